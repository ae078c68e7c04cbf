"""What `python -m ops verify` and `python -m ops check` look at, one question a module."""
