// What people do with the JDBC driver, on an empty database:
//
//	javac -cp 'lib/*' -d . Main.java && java -cp '.:lib/*' Main URL
//
// Prints what it got, and nothing that differs from run to run. --version prints
// what it is made of.

import java.io.StringReader;
import java.io.StringWriter;
import java.net.URI;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.util.Arrays;
import java.util.Objects;
import java.util.Properties;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;
import org.postgresql.largeobject.LargeObject;
import org.postgresql.largeobject.LargeObjectManager;

public class Main {
    static void say(Object... what) {
        System.out.println(Arrays.stream(what).map(Objects::toString).collect(Collectors.joining(" ")));
    }

    interface Action {
        void run() throws Exception;
    }

    static void fails(String what, Action a) throws Exception {
        try {
            a.run();
            say(what, "should have failed");
        } catch (SQLException e) {
            say(what, "->", e.getSQLState(), e.getMessage().lines().findFirst().get());
        }
    }

    static void run(Connection c, String sql) throws SQLException {
        try (Statement s = c.createStatement()) {
            s.execute(sql);
        }
    }

    static Object one(Connection c, String sql) throws SQLException {
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(sql)) {
            r.next();
            return r.getObject(1);
        }
    }

    static Connection dial(String url, String... more) throws SQLException {
        URI u = URI.create(url);
        Properties p = new Properties();
        p.setProperty("user", u.getUserInfo());
        for (int i = 0; i < more.length; i += 2) {
            p.setProperty(more[i], more[i + 1]);
        }
        return DriverManager.getConnection("jdbc:postgresql://" + u.getHost() + ":" + u.getPort() + u.getPath(), p);
    }

    static void statements(Connection c) throws Exception {
        run(c, "create table t (id int primary key, s text, b bytea)");
        try (var p = c.prepareStatement("insert into t values (?, ?, ?)")) {
            for (int i = 1; i < 12; i++) { // prepared by the server from the fifth on
                p.setInt(1, i);
                p.setString(2, "x".repeat(i));
                p.setBytes(3, new byte[] {0, (byte) i});
                p.executeUpdate();
            }
            say("insert", p.getUpdateCount());
        }
        say("prepared", one(c, "select count(*) > 0 from pg_prepared_statements"));
        try (var p = c.prepareStatement("insert into t (s, id) values ('new', ?) returning id", Statement.RETURN_GENERATED_KEYS)) {
            p.setInt(1, 20);
            p.executeUpdate();
            try (ResultSet r = p.getGeneratedKeys()) {
                r.next();
                say("generated", r.getInt(1));
            }
        }
        try (Statement s = c.createStatement()) {
            boolean rows = s.execute("insert into t values (50); delete from t where id = 50; select 2");
            say("several", rows, s.getUpdateCount());
            say("then", s.getMoreResults(), s.getUpdateCount(), s.getMoreResults());
        }
        byte[] big = new byte[5_000_000];
        Arrays.fill(big, (byte) 'w');
        try (var p = c.prepareStatement("select ?::bytea")) {
            p.setBytes(1, big);
            try (ResultSet r = p.executeQuery()) {
                r.next();
                say("big", Arrays.equals(big, r.getBytes(1)));
            }
        }
        try (var p = c.prepareStatement("select * from t where id = ?")) {
            p.setInt(1, 3);
            try (ResultSet r = p.executeQuery()) {
                r.next();
                say("row", r.getInt("id"), r.getString("s"), Arrays.toString(r.getBytes("b")));
            }
        }
    }

    static void batches(Connection c) throws Exception {
        try (var p = c.prepareStatement("insert into t (id, s) values (?, ?)")) {
            for (int i = 100; i < 1100; i++) {
                p.setInt(1, i);
                p.setString(2, "row " + i);
                p.addBatch();
            }
            say("batch", Arrays.stream(p.executeBatch()).sum());
            for (int i : new int[] {1100, 1101, 1100, 1102}) {
                p.setInt(1, i);
                p.setString(2, "");
                p.addBatch();
            }
            try {
                p.executeBatch();
            } catch (BatchUpdateException e) {
                say("batch", "->", e.getSQLState(), Arrays.toString(e.getUpdateCounts()));
            }
        }
        say("kept", one(c, "select count(*) from t where id >= 1100"));
        try (Statement s = c.createStatement()) {
            s.addBatch("update t set s = 'u' where id = 100");
            s.addBatch("delete from t where id between 101 and 110");
            say("mixed", Arrays.toString(s.executeBatch()));
        }
    }

    static void errors(Connection c) throws Exception {
        for (String sql : new String[] {"insert into t (id) values (1)", "select 1/0", "select nothing from nowhere", "syntax"}) {
            fails(sql, () -> run(c, sql));
        }
        try (Statement s = c.createStatement()) {
            s.setQueryTimeout(2);
            fails("timed out, which cancels", () -> s.execute("select pg_sleep(600)"));
        }
        say("goes on", one(c, "select 'yes'"));
    }

    static void transactions(Connection c) throws Exception {
        c.setAutoCommit(false);
        run(c, "update t set s = 'in block' where id < 4");
        Savepoint here = c.setSavepoint("here");
        fails("in block", () -> run(c, "insert into t (id) values (1)"));
        fails("aborted", () -> run(c, "select 1"));
        c.rollback(here);
        run(c, "delete from t where id = 4");
        c.commit();
        run(c, "delete from t");
        c.rollback();
        try (Statement s = c.createStatement()) {
            s.setFetchSize(100); // portals with a row limit
            long sum = 0;
            try (ResultSet r = s.executeQuery("select id from t where id >= 100 order by id")) {
                while (r.next()) {
                    sum += r.getInt(1);
                }
            }
            say("fetched", sum);
        }
        LargeObjectManager m = c.unwrap(PGConnection.class).getLargeObjectAPI(); // function calls
        long oid = m.createLO();
        try (LargeObject o = m.open(oid)) {
            o.write(new byte[100_000]);
        }
        try (LargeObject o = m.open(oid)) {
            say("large object", o.size64(), o.read(200_000).length);
        }
        m.delete(oid);
        c.commit();
        c.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
        c.setReadOnly(true);
        fails("read only", () -> run(c, "delete from t"));
        c.rollback();
        c.setReadOnly(false);
        c.setAutoCommit(true);
        say("after", one(c, "select count(*) from t"), one(c, "select count(*) from t where s = 'in block'"));
    }

    static void copies(Connection c) throws Exception {
        CopyManager m = c.unwrap(PGConnection.class).getCopyAPI();
        String rows = IntStream.range(2000, 7000).mapToObj(i -> i + "\trow " + i + "\n").collect(Collectors.joining());
        say("copy in", m.copyIn("copy t (id, s) from stdin", new StringReader(rows)));
        StringWriter out = new StringWriter();
        say("copy out", m.copyOut("copy (select id, s from t where id >= 2000 order by id) to stdout", out), out.toString().equals(rows));
        fails("copy", () -> m.copyIn("copy t (id, s) from stdin", new StringReader("8000\tx\nbad\n")));
    }

    static void asynchronous(Connection c, String url) throws Exception {
        try (Statement s = c.createStatement()) {
            s.execute("do $$ begin raise notice 'said'; end $$");
            say("notice", s.getWarnings().getMessage());
            s.execute("listen news");
        }
        try (Connection other = dial(url)) {
            run(other, "notify news, 'paper'");
        }
        say("notified", c.unwrap(PGConnection.class).getNotifications(60_000)[0].getParameter());
        try (Connection simple = dial(url, "preferQueryMode", "simple");
                var p = simple.prepareStatement("insert into t (id) values (?)")) {
            p.setInt(1, 8500);
            say("simple mode", p.executeUpdate());
        }
        ExecutorService pool = Executors.newFixedThreadPool(8);
        Future<?>[] all = new Future<?>[8];
        for (int i = 0; i < all.length; i++) {
            int id = 9000 + i;
            all[i] = pool.submit(() -> {
                try (Connection mine = dial(url)) {
                    run(mine, "insert into t (id) values (" + id + ")");
                }
                return null;
            });
        }
        for (Future<?> f : all) {
            f.get();
        }
        pool.shutdown();
        say("in parallel", one(c, "select count(*) from t where id >= 9000"));
        fails("no such database", () -> dial(url + "_missing").close());
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("--version")) {
            say("PostgreSQL JDBC", new org.postgresql.Driver().getMajorVersion() + "." + new org.postgresql.Driver().getMinorVersion()
                    + "." + org.postgresql.util.DriverInfo.PATCH_VERSION, "(Java " + Runtime.version().feature() + ")");
            return;
        }
        try (Connection c = dial(args[0])) {
            statements(c);
            batches(c);
            errors(c);
            transactions(c);
            copies(c);
            asynchronous(c, args[0]);
        }
    }
}
