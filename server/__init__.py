"""HTTP in, events out (docs/http-api.md); and the command ``thalweg``."""

from importlib.metadata import PackageNotFoundError, version


def package_version(package: str) -> str | None:
    """The installed version of a package; None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
