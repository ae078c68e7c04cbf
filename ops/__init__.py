"""Commands for people and programs: `python -m ops COMMAND`."""
