"""Which releases changed a case: a walk over all of them by times, or halves by an exact number or a command."""
