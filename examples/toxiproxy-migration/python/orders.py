"""A small service with retry logic."""

import psycopg


class Unavailable(Exception):
    """The order may have been placed or not: ask again with the same number."""


class Orders:
    """Stores orders. Placing one twice places it once: its number is the key."""

    def __init__(self, url, attempts=3, patience=5):
        self.url, self.attempts, self.patience = url, attempts, patience

    def place(self, number, item):
        """Return once it's certain that the order is there."""
        for _ in range(self.attempts):
            try:
                return self._try(number, item)
            except psycopg.Error as e:
                if not retryable(e):
                    raise
                last = e
        raise Unavailable("the database can't be reached") from last

    def _try(self, number, item):
        # what TCP has sent and nobody has taken ends the connection then
        patience = {"connect_timeout": self.patience, "tcp_user_timeout": self.patience * 1000}
        with psycopg.connect(self.url, autocommit=True, **patience) as c:
            c.execute("INSERT INTO orders VALUES (%s, %s) ON CONFLICT DO NOTHING", (number, item))


def retryable(e):
    """Of the network's errors, and of the server's own those that another attempt
    may not meet: the transaction was rolled back, or the server is going."""
    return e.sqlstate is None or e.sqlstate[:2] in ("40", "57")
