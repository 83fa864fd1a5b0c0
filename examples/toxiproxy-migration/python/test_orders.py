"""The tests of before. They know Toxiproxy only."""

import time

from orders import Unavailable
from rig import Rig


class TestOrders(Rig):
    def test_slow_database(self):
        self.proxy.add_toxic(type="latency", attributes={"latency": 100})
        began = time.monotonic()
        self.orders.place(1, "tea")
        self.assertGreaterEqual(time.monotonic() - began, 0.2)  # connecting, and the insert
        self.assertEqual(self.stored(), 1)

    def test_no_database(self):
        with self.proxy.down():
            self.assertRaises(Unavailable, self.orders.place, 1, "tea")
        self.orders.place(1, "tea")
        self.assertEqual(self.stored(), 1)

    def test_cut_wire(self):
        self.orders.patience = 2  # the least that libpq knows
        self.orders.attempts = 1
        self.proxy.add_toxic(type="bandwidth", attributes={"rate": 0})
        self.assertRaises(Unavailable, self.orders.place, 1, "tea")

    def test_connections_that_are_reset(self):
        self.proxy.add_toxic(type="reset_peer", attributes={"timeout": 0})
        self.assertRaises(Unavailable, self.orders.place, 1, "tea")
        self.assertEqual(self.stored(), 0)
