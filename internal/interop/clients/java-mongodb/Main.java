import com.mongodb.ConnectionString;
import com.mongodb.CursorType;
import com.mongodb.MongoBulkWriteException;
import com.mongodb.MongoClientSettings;
import com.mongodb.MongoException;
import com.mongodb.MongoServerException;
import com.mongodb.MongoTimeoutException;
import com.mongodb.TransactionOptions;
import com.mongodb.WriteConcern;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoCursor;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.*;
import com.mongodb.event.CommandListener;
import com.mongodb.event.CommandStartedEvent;
import java.security.MessageDigest;
import java.util.*;
import java.util.concurrent.TimeUnit;
import org.bson.Document;
import org.bson.types.Binary;

/**
 * What people do with the Java sync driver, on an empty database: Main URI [FLAG,...]
 *
 * <p>Prints what it got, and nothing that differs from run to run; at the end how often it sent
 * each command. --version prints what it is made of. Flags add what only some servers have: w0
 * (writes without a reply), timeout (collection "slow" answers late), transaction, tail (a capped
 * collection), watch, stepdown (writes while a replica set changes its primary).
 */
public class Main {
  interface Act {
    Object run() throws Exception;
  }

  static void step(String name, Act act) throws Exception {
    Object said;
    try {
      said = act.run();
    } catch (MongoBulkWriteException e) {
      List<Object> errors = new ArrayList<>();
      e.getWriteErrors().forEach(w -> errors.add(List.of(w.getIndex(), w.getCode())));
      said = List.of("MongoBulkWriteException", e.getWriteResult().getInsertedCount(), errors);
    } catch (MongoServerException e) {
      // The message has the server's address, and the reply with its time.
      said = List.of(e.getClass().getSimpleName(), e.getCode(),
          e.getMessage().replaceAll("127\\.0\\.0\\.1:\\d+", "server").replaceAll("The full response is.*", ""));
    } catch (MongoException e) {
      if (!e.getClass().getSimpleName().contains("Timeout")) throw e;
      said = e.getClass().getSimpleName();
    }
    System.out.println(name + ": " + said);
  }

  static Document doc(Object... pairs) {
    Document d = new Document();
    for (int i = 0; i < pairs.length; i += 2) d.append((String) pairs[i], pairs[i + 1]);
    return d;
  }

  static void inserts(MongoCollection<Document> c) throws Exception {
    step("insert one", () -> c.insertOne(doc("_id", 1, "item", "pencil", "qty", 5)));
    List<Document> many = new ArrayList<>();
    for (int i = 0; i < 250; i++) many.add(doc("_id", 100 + i, "item", "pen", "qty", i % 10));
    step("insert many", () -> c.insertMany(many).getInsertedIds().size());
    step("duplicate key", () -> c.insertOne(doc("_id", 1)));
    step("bulk", () -> c.bulkWrite(List.of(
        new InsertOneModel<>(doc("_id", 2, "qty", 1)),
        new InsertOneModel<>(doc("_id", 3, "qty", 2)),
        new UpdateOneModel<>(doc("_id", 2), doc("$inc", doc("qty", 10))),
        new ReplaceOneModel<>(doc("_id", 3), doc("item", "ink")),
        new UpdateManyModel<>(doc("qty", doc("$lt", 3)), doc("$set", doc("low", true))),
        new DeleteOneModel<>(doc("_id", 3)))).getModifiedCount());
    step("bulk with errors", () -> c.bulkWrite(List.of(
        new InsertOneModel<>(doc("_id", 1)), new InsertOneModel<>(doc("_id", 5)), new InsertOneModel<>(doc("_id", 2))),
        new BulkWriteOptions().ordered(false)));
  }

  static void changes(MongoCollection<Document> c) throws Exception {
    step("update", () -> c.updateMany(doc("qty", 7), doc("$set", doc("lucky", true))));
    step("update nothing", () -> c.updateOne(doc("_id", -1), doc("$set", doc("x", 1))));
    step("upsert", () -> c.updateOne(doc("_id", 4), doc("$set", doc("x", 1)), new UpdateOptions().upsert(true)));
    step("delete", () -> c.deleteMany(doc("qty", 9)));
    step("find one and update", () -> c.findOneAndUpdate(doc("_id", 1), doc("$inc", doc("qty", 1)),
        new FindOneAndUpdateOptions().returnDocument(ReturnDocument.AFTER)));
    WriteConcern[] concerns = {
      WriteConcern.W1, WriteConcern.W1.withJournal(true), WriteConcern.JOURNALED, WriteConcern.MAJORITY,
      WriteConcern.MAJORITY.withWTimeout(1500, TimeUnit.MILLISECONDS),
      WriteConcern.W2.withWTimeout(100, TimeUnit.MILLISECONDS)
    };
    for (int i = 0; i < concerns.length; i++) {
      int n = i;
      step("concern " + n, () -> c.withWriteConcern(concerns[n])
          .updateOne(doc("_id", 100 + n), doc("$set", doc("seen", n))).getModifiedCount());
    }
  }

  static void reads(MongoDatabase db, MongoCollection<Document> c) throws Exception {
    step("find in batches", () -> c.find(doc("_id", doc("$lt", 400))).batchSize(50).sort(doc("_id", 1)).into(new ArrayList<>()));
    step("aggregate", () -> c.aggregate(List.of(
        doc("$match", doc("item", "pen")), doc("$group", doc("_id", null, "n", doc("$sum", 1))))).into(new ArrayList<>()));
    step("count", () -> c.countDocuments());
    step("estimated count", () -> c.estimatedDocumentCount());
    step("distinct", () -> new TreeSet<>(c.distinct("qty", Integer.class).into(new ArrayList<>())));
    step("no such command", () -> db.runCommand(doc("whatIsThis", 1)));
  }

  /** 5 MB that no compressor and no mistake can shrink. */
  static byte[] noise(int seed) {
    byte[] b = new byte[5_000_000];
    new Random(seed).nextBytes(b);
    return b;
  }

  static void big(MongoCollection<Document> c) throws Exception {
    step("15 MB", () -> c.insertOne(doc("_id", "big", "a", noise(1), "b", noise(2), "c", noise(3))));
    step("15 MB back", () -> {
      Document d = c.find(doc("_id", "big")).first();
      MessageDigest hash = MessageDigest.getInstance("SHA-256");
      for (String k : List.of("a", "b", "c")) hash.update(((Binary) d.get(k)).getData());
      return List.of(Arrays.equals(((Binary) d.get("b")).getData(), noise(2)), HexFormat.of().formatHex(hash.digest()));
    });
  }

  static void schema(MongoCollection<Document> c) throws Exception {
    step("create index", () -> c.createIndex(doc("item", 1)));
    step("indexes", () -> c.listIndexes().into(new ArrayList<>()));
    step("drop", () -> {
      c.drop();
      return null;
    });
    step("count after drop", () -> c.countDocuments());
  }

  static void extra(String flag, MongoClient client, MongoDatabase db, MongoCollection<Document> c) throws Exception {
    switch (flag) {
      case "w0":
        MongoCollection<Document> silent = db.getCollection("silent");
        for (int i = 0; i < 20; i++) {
          int id = i;
          step("w: 0", () -> silent.withWriteConcern(WriteConcern.UNACKNOWLEDGED).insertOne(doc("_id", id)));
        }
        step("count of w: 0", () -> silent.countDocuments());
        break;
      case "timeout":
        step("slow", () -> db.getCollection("slow").withTimeout(600, TimeUnit.MILLISECONDS).find().first());
        step("after slow", () -> c.countDocuments(doc("_id", 1)));
        break;
      case "transaction":
        transactions(client, c);
        break;
      case "tail":
        tail(db);
        break;
      case "stepdown":
        stepDown(client, db);
        break;
      case "watch":
        watch(c);
        break;
      default:
        throw new IllegalArgumentException(flag);
    }
  }

  static void transactions(MongoClient client, MongoCollection<Document> c) throws Exception {
    try (ClientSession s = client.startSession()) {
      step("commit", () -> {
        s.startTransaction(TransactionOptions.builder().writeConcern(WriteConcern.MAJORITY.withJournal(true)).build());
        c.insertOne(s, doc("_id", "t1"));
        c.updateOne(s, doc("_id", "t1"), doc("$set", doc("x", 1)));
        s.commitTransaction();
        return null;
      });
      step("abort", () -> {
        s.startTransaction();
        c.insertOne(s, doc("_id", "t2"));
        s.abortTransaction();
        return null;
      });
    }
    step("after transactions", () -> c.find(doc("_id", doc("$in", List.of("t1", "t2")))).into(new ArrayList<>()));
  }

  static void tail(MongoDatabase db) throws Exception {
    step("create capped", () -> {
      db.createCollection("capped", new CreateCollectionOptions().capped(true).sizeInBytes(100_000));
      return null;
    });
    MongoCollection<Document> capped = db.getCollection("capped");
    step("insert capped", () -> capped.insertMany(List.of(doc("_id", 0), doc("_id", 1), doc("_id", 2))).getInsertedIds().size());
    step("tail", () -> {
      List<Integer> got = new ArrayList<>();
      try (MongoCursor<Document> cursor = capped.find().cursorType(CursorType.TailableAwait).batchSize(2)
          .maxAwaitTime(1, TimeUnit.SECONDS).cursor()) {
        for (int i = 3; i < 6; i++) {
          capped.insertOne(doc("_id", i));
          while (got.size() <= i) got.add(cursor.next().getInteger("_id"));
        }
      }
      return got;
    });
  }

  static Object write(MongoCollection<Document> moving, int from, int to) {
    for (int i = from; i < to; i++) {
      moving.insertOne(doc("_id", i));
      moving.updateOne(doc("_id", i), doc("$inc", doc("n", 1)));
    }
    return to;
  }

  static void stepDown(MongoClient client, MongoDatabase db) throws Exception {
    MongoCollection<Document> moving = db.getCollection("moving");
    step("writes", () -> write(moving, 0, 20));
    step("step down", () -> client.getDatabase("admin").runCommand(doc("replSetStepDown", 60)).get("ok"));
    step("writes", () -> write(moving, 20, 40));
    step("written once", () -> moving.countDocuments(doc("n", 1)));
  }

  static void watch(MongoCollection<Document> c) throws Exception {
    step("watch", () -> {
      List<Object> got = new ArrayList<>();
      try (var cursor = c.watch().maxAwaitTime(50, TimeUnit.MILLISECONDS).cursor()) {
        c.insertOne(doc("_id", "w1"));
        c.deleteOne(doc("_id", "w1"));
        while (got.size() < 2) {
          var e = cursor.next();
          got.add(List.of(e.getOperationType(), e.getDocumentKey()));
        }
      }
      return got;
    });
  }

  public static void main(String[] args) throws Exception {
    if (args[0].equals("--version")) {
      // The jar's name has it: its manifest names the driver's core.
      String jar = MongoClients.class.getProtectionDomain().getCodeSource().getLocation().getPath();
      System.out.println("mongodb-driver-sync " + jar.replaceAll(".*-([0-9.]+)\\.jar", "$1"));
      return;
    }
    Map<String, Integer> sent = Collections.synchronizedMap(new TreeMap<>());
    MongoClientSettings settings = MongoClientSettings.builder()
        .applyConnectionString(new ConnectionString(args[0]))
        .addCommandListener(new CommandListener() {
          @Override
          public void commandStarted(CommandStartedEvent e) {
            sent.merge(e.getCommandName(), 1, Integer::sum);
          }
        })
        .build();
    try (MongoClient client = MongoClients.create(settings)) {
      MongoDatabase db = client.getDatabase("shop");
      MongoCollection<Document> c = db.getCollection("orders");
      inserts(c);
      changes(c);
      reads(db, c);
      if (args.length > 1 && !args[1].isEmpty()) {
        for (String flag : args[1].split(",")) extra(flag, client, db, c);
      }
      big(c);
      schema(c);
    }
    StringJoiner counts = new StringJoiner(",", "{", "}");
    sent.forEach((name, n) -> counts.add("\"" + name + "\":" + n));
    System.out.println("sent " + counts);
  }
}
