"""Locks that a process holds as long as it lives, however it ends."""


def try_lock(descriptor: int) -> bool:
    """Locks an open file or folder; False where another process holds its lock. Windows and file systems without locks
    keep nobody out."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True
