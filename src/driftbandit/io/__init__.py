"""Files and tables of users: logs, arms, models and results; every file is written whole."""
