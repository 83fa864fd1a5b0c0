"""What people do with PyMongo, on an empty database: python main.py URI [FLAG,...]

Prints what it got, and nothing that differs from run to run; at the end how
often it sent each command. --version prints what it is made of. Flags add what
only some servers have: w0 (writes without a reply), timeout (collection "slow"
answers late), transaction, tail (a capped collection), watch, stepdown (writes
while a replica set changes its primary).
"""
import collections
import hashlib
import json
import random
import sys

import pymongo
from pymongo import errors, monitoring
from pymongo.write_concern import WriteConcern


class Sent(monitoring.CommandListener):
    """Counts the commands that the driver says it sent."""

    def __init__(self):
        self.count = collections.Counter()

    def started(self, event):
        self.count[event.command_name] += 1

    def succeeded(self, event):
        pass

    def failed(self, event):
        pass


def step(name, do):
    try:
        said = do()
    except errors.BulkWriteError as e:
        e.details.pop("electionId", None)
        said = ["BulkWriteError", e.details["nInserted"], [(w["index"], w["code"]) for w in e.details["writeErrors"]]]
    except errors.OperationFailure as e:
        said = [type(e).__name__, e.code, (e.details or {}).get("errmsg")]
    except errors.PyMongoError as e:
        said = [type(e).__name__, "timeout", e.timeout]
    print(f"{name}: {json.dumps(said, default=str)}", flush=True)


def inserts(c):
    step("insert one", lambda: c.insert_one({"_id": 1, "item": "pencil", "qty": 5}).inserted_id)
    many = [{"_id": 100 + i, "item": "pen", "qty": i % 10} for i in range(250)]
    step("insert many", lambda: len(c.insert_many(many).inserted_ids))
    step("duplicate key", lambda: c.insert_one({"_id": 1}))
    step("bulk", lambda: c.bulk_write([
        pymongo.InsertOne({"_id": 2, "qty": 1}),
        pymongo.InsertOne({"_id": 3, "qty": 2}),
        pymongo.UpdateOne({"_id": 2}, {"$inc": {"qty": 10}}),
        pymongo.ReplaceOne({"_id": 3}, {"item": "ink"}),
        pymongo.UpdateMany({"qty": {"$lt": 3}}, {"$set": {"low": True}}),
        pymongo.DeleteOne({"_id": 3}),
    ]).modified_count)
    step("bulk with errors", lambda: c.bulk_write([
        pymongo.InsertOne({"_id": 1}), pymongo.InsertOne({"_id": 5}), pymongo.InsertOne({"_id": 2}),
    ], ordered=False))


def changes(c):
    step("update", lambda: c.update_many({"qty": 7}, {"$set": {"lucky": True}}).modified_count)
    step("update nothing", lambda: c.update_one({"_id": -1}, {"$set": {"x": 1}}).matched_count)
    step("upsert", lambda: c.update_one({"_id": 4}, {"$set": {"x": 1}}, upsert=True).upserted_id)
    step("delete", lambda: c.delete_many({"qty": 9}).deleted_count)
    step("find one and update", lambda: c.find_one_and_update(
        {"_id": 1}, {"$inc": {"qty": 1}}, return_document=pymongo.ReturnDocument.AFTER))
    for i, wc in enumerate(({"w": 1}, {"w": 1, "j": True}, {"j": True}, {"w": "majority"},
                            {"w": "majority", "wtimeout": 1500}, {"w": 2, "wtimeout": 100})):
        own = c.with_options(write_concern=WriteConcern(**wc))
        step(f"concern {i}", lambda: own.update_one({"_id": 100 + i}, {"$set": {"seen": i}}).modified_count)


def reads(c):
    step("find in batches", lambda: [
        (d["_id"], d.get("qty")) for d in c.find({"_id": {"$lt": 400}}, batch_size=50).sort("_id", 1)])
    step("aggregate", lambda: list(c.aggregate([
        {"$match": {"item": "pen"}}, {"$group": {"_id": None, "n": {"$sum": 1}}}])))
    step("count", lambda: c.count_documents({}))
    step("estimated count", lambda: c.estimated_document_count())
    step("distinct", lambda: sorted(c.distinct("qty")))
    step("no such command", lambda: c.database.command("whatIsThis"))


def big(c):
    made = random.Random(1)
    doc = {"_id": "big", **{k: made.randbytes(5_000_000) for k in "abc"}}
    step("15 MB", lambda: c.insert_one(doc).inserted_id)

    def read():
        got = c.find_one({"_id": "big"})
        return [got == doc, hashlib.sha256(b"".join(got[k] for k in "abc")).hexdigest()]
    step("15 MB back", read)


def schema(c):
    step("create index", lambda: c.create_index([("item", 1)]))
    step("indexes", lambda: sorted(i["name"] for i in c.list_indexes()))
    step("drop", lambda: c.drop())
    step("count after drop", lambda: c.count_documents({}))


def unacknowledged(c):
    own = c.database.get_collection("silent", write_concern=WriteConcern(w=0))
    for i in range(20):
        step("w: 0", lambda: own.insert_one({"_id": i}).acknowledged)
    step("count of w: 0", lambda: c.database.silent.count_documents({}))


def late(c):
    def slow():
        with pymongo.timeout(0.6):
            return c.database.slow.find_one({})
    step("slow", slow)
    step("after slow", lambda: c.count_documents({"_id": 1}))


def transactions(c):
    client = c.database.client
    with client.start_session() as s:
        def commit():
            with s.start_transaction(write_concern=WriteConcern(w="majority", j=True)):
                c.insert_one({"_id": "t1"}, session=s)
                c.update_one({"_id": "t1"}, {"$set": {"x": 1}}, session=s)
        step("commit", commit)
        def abort():
            s.start_transaction()
            c.insert_one({"_id": "t2"}, session=s)
            s.abort_transaction()
        step("abort", abort)
    step("after transactions", lambda: sorted(d["_id"] for d in c.find({"_id": {"$in": ["t1", "t2"]}})))


def tail(c):
    db = c.database
    step("create capped", lambda: db.create_collection("capped", capped=True, size=100_000).name)
    step("insert capped", lambda: len(db.capped.insert_many([{"_id": i} for i in range(3)]).inserted_ids))

    def follow():
        got = []
        cursor = db.capped.find({}, cursor_type=pymongo.CursorType.TAILABLE_AWAIT, batch_size=2).max_await_time_ms(50)
        for i in range(3, 6):
            db.capped.insert_one({"_id": i})
            while i not in got:
                got += [d["_id"] for d in cursor]  # ends when the server had nothing for a while
        cursor.close()
        return got
    step("tail", follow)


def watch(c):
    def follow():
        with c.watch(max_await_time_ms=50) as stream:
            c.insert_one({"_id": "w1"})
            c.delete_one({"_id": "w1"})
            return [(e["operationType"], e["documentKey"]) for _, e in zip(range(2), stream)]
    step("watch", follow)


def step_down(c):
    moving = c.database.moving

    def write(start, end):
        for i in range(start, end):
            moving.insert_one({"_id": i})
            moving.update_one({"_id": i}, {"$inc": {"n": 1}})
        return end
    step("writes", lambda: write(0, 20))
    step("step down", lambda: c.database.client.admin.command("replSetStepDown", 60)["ok"])
    step("writes", lambda: write(20, 40))
    step("written once", lambda: moving.count_documents({"n": 1}))


def main(uri, flags):
    sent = Sent()
    client = pymongo.MongoClient(uri, event_listeners=[sent])
    c = client.shop.orders
    inserts(c)
    changes(c)
    reads(c)
    extra = {"w0": unacknowledged, "timeout": late, "transaction": transactions, "tail": tail, "watch": watch,
             "stepdown": step_down}
    for f in flags:
        extra[f](c)
    big(c)
    schema(c)
    client.close()
    print("sent", json.dumps(sent.count, sort_keys=True))


if sys.argv[1] == "--version":
    print("PyMongo", pymongo.version)
else:
    main(sys.argv[1], [f for f in sys.argv[2].split(",") if f] if len(sys.argv) > 2 else [])
