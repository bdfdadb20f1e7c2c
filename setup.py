"""Metadata of the package; tools are configured in pyproject.toml."""

import re
from pathlib import Path

from setuptools import find_packages, setup

here = Path(__file__).parent
version = re.search(r'^__version__ = "(.+)"$', (here / "qd/version.py").read_text(), re.MULTILINE)
assert version is not None

setup(
    name="qd",
    version=version[1],
    description="A job queue in the MySQL or MariaDB that you already run",
    long_description=(here / "README.md").read_text() if (here / "README.md").exists() else "",
    long_description_content_type="text/markdown",
    license="MIT",
    python_requires=">=3.10",
    packages=find_packages(include=["qd", "qd.*"]),
    package_data={"qd": ["py.typed", "store/**/*.sql"]},
    install_requires=[
        "mysql-connector-python>=9.7,<10",
        "prometheus-client>=0.20",
        "PyYAML>=6.0",
        "sdnotify>=0.3.2",
        "click>=8.1",
        "pydantic>=2.6,<3",
        "rich>=13",
    ],
    extras_require={
        "test": [
            "pytest>=8",
            "pytest-xdist>=3.5",
            "PyMySQL>=1.1",
            "hypothesis>=6",
            "grafana-foundation-sdk==0.0.21; python_version>='3.11'",
        ],
        "dev": ["ruff>=0.6", "mypy>=1.11", "import-linter>=2.1", "types-PyYAML", "matplotlib>=3.8"],
    },
    entry_points={"console_scripts": ["qd = qd.cli:main"]},
)
