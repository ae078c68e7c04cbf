"""What goes wrong before or while the toolchain is made, as sentences for the person at the keyboard."""


class ToolchainError(Exception):
    """The toolchain cannot be had: what is missing or failed, why it matters, and the way out."""
