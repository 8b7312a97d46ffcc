"""A finished study, and a copy of it to damage."""

import shutil

import pytest

from driftbandit import studies
from driftbandit.studies import engines
from stored_studies import METRIC, Plays


@pytest.fixture
def computed(monkeypatch):
    """Names of the chunks that any engine of this process computes, as it begins them."""
    names = []
    compute = engines.compute

    def counted(specification, chunk, *rest):
        names.append(chunk.name)
        return compute(specification, chunk, *rest)

    monkeypatch.setattr(engines, "compute", counted)
    return names


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A folder with the whole of METRIC, never written to again."""
    folder = tmp_path_factory.mktemp("finished")
    return folder, studies.run(METRIC, folder, Plays())


@pytest.fixture
def copy(finished, tmp_path):
    """A copy of that folder to be damaged, and the study's own folder in it."""
    shutil.copytree(finished[0], tmp_path / "studies")
    return tmp_path / "studies", tmp_path / "studies" / METRIC.identity
