"""The service behind a proxy, and the database without one."""

import os
import unittest
from urllib.parse import urlsplit

import psycopg
import toxiproxy

from orders import Orders


@unittest.skipUnless("DATABASE_URL" in os.environ, "DATABASE_URL is the PostgreSQL to use")
class Rig(unittest.TestCase):
    def setUp(self):
        database = os.environ["DATABASE_URL"]
        self.database = psycopg.connect(database, autocommit=True)
        self.addCleanup(self.database.close)
        self.database.execute("DROP TABLE IF EXISTS orders")
        self.database.execute("CREATE TABLE orders (number int PRIMARY KEY, item text)")

        server = toxiproxy.Toxiproxy()
        api = urlsplit(os.environ.get("TOXIPROXY_URL", "http://localhost:8474"))
        server.update_api_consumer(api.hostname, api.port)
        upstream = urlsplit(database).netloc.rpartition("@")[2]
        self.proxy = server.create(name="orders-" + self.id(), upstream=upstream)
        self.addCleanup(self.proxy.destroy)
        self.orders = Orders(database.replace(upstream, self.proxy.listen))

    def stored(self):
        return self.database.execute("SELECT count(*) FROM orders").fetchone()[0]
