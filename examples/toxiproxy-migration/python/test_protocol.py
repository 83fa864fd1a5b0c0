"""What is new: toxics that know the protocol, by the same client."""

import psycopg

from orders import Unavailable
from rig import Rig


class TestProtocol(Rig):
    def test_lost_acknowledgement(self):
        """The insert is done, and nobody hears of it."""
        self.proxy.add_toxic(type="lose_reply", name="lost", attributes={"match": {"statement": "INSERT"}})
        self.assertRaises(Unavailable, self.orders.place, 1, "tea")
        self.assertEqual(self.stored(), 1)
        self.proxy.destroy_toxic("lost")
        self.orders.place(1, "tea")
        self.assertEqual(self.stored(), 1)

    def test_serialization_failure(self):
        """The first two inserts meet one, the third doesn't."""
        self.proxy.add_toxic(type="refuse", attributes={"match": {"statement": "INSERT"}, "code": "40001", "first": 2})
        self.orders.place(1, "tea")
        self.assertEqual(self.stored(), 1)

    def test_refused(self):
        """What another attempt won't help isn't tried again."""
        self.proxy.add_toxic(type="refuse", attributes={"match": {"statement": "INSERT"}, "code": "42501"})
        self.assertRaises(psycopg.errors.InsufficientPrivilege, self.orders.place, 1, "tea")
        self.assertEqual(self.stored(), 0)
