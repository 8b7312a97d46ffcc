"""Draw the pictures of the explanation pages: `python -m tools.pictures`, in the project's root."""
