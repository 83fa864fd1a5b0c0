import eu.rekawek.toxiproxy.Proxy;
import eu.rekawek.toxiproxy.ToxiproxyClient;
import eu.rekawek.toxiproxy.model.Toxic;
import eu.rekawek.toxiproxy.model.ToxicDirection;
import eu.rekawek.toxiproxy.model.toxic.Latency;
import eu.rekawek.toxiproxy.model.toxic.Slicer;
import java.util.Comparator;
import java.util.List;

/** Makes every call of toxiproxy-java: Main HOST PORT UPSTREAM. */
public class Main {
  interface Call {
    Object get() throws Exception;
  }

  interface Do {
    void run() throws Exception;
  }

  /** Prints what a call returned, or how it failed. */
  static Object said(String call, Call c) {
    try {
      Object got = c.get();
      System.out.println(call + " " + plain(got));
      return got;
    } catch (Exception e) {
      System.out.println(call + " failed: " + e.getMessage());
      return null;
    }
  }

  static void did(String call, Do d) {
    said(call, () -> {
      d.run();
      return "";
    });
  }

  static String plain(Object x) throws Exception {
    if (x instanceof Proxy p) {
      return "proxy " + p.getName() + " " + p.getListen() + " " + p.getUpstream() + " " + p.isEnabled();
    }
    if (x instanceof Toxic t) {
      return "toxic " + t.getName() + " " + t.getStream() + " " + t.getToxicity();
    }
    if (x instanceof List<?> l) {
      StringBuilder b = new StringBuilder();
      for (Object o : l) {
        b.append("[").append(plain(o)).append("]");
      }
      return b.toString();
    }
    return String.valueOf(x);
  }

  public static void main(String[] args) throws Exception {
    String upstream = args[2];
    ToxiproxyClient client = new ToxiproxyClient(args[0], Integer.parseInt(args[1]));
    said("version", client::version);
    said("getProxies", client::getProxies);
    Proxy proxy = (Proxy) said("createProxy", () -> client.createProxy("orders", "localhost:0", upstream));
    said("createProxy again", () -> client.createProxy("orders", "localhost:0", upstream));
    said("createProxy on a taken port", () -> client.createProxy("taken", upstream, upstream));
    said("getProxy", () -> client.getProxy("orders"));
    said("getProxy nobody", () -> client.getProxy("nobody"));
    said("getProxyOrNull nobody", () -> client.getProxyOrNull("nobody"));
    did("disable", proxy::disable);
    said("isEnabled", proxy::isEnabled);
    did("enable", proxy::enable);
    did("setUpstream", () -> proxy.setUpstream("localhost:1"));
    did("setUpstream", () -> proxy.setUpstream(upstream));
    did("setListen", () -> proxy.setListen(upstream));
    said("getProxy", () -> client.getProxy("orders"));
    did("setListen", () -> proxy.setListen("127.0.0.1:0"));
    did("enable", proxy::enable);
    toxics(proxy);
    said("getProxies", client::getProxies);
    did("reset", client::reset);
    said("getAll after a reset", () -> proxy.toxics().getAll());
    // as Testcontainers cuts a connection
    did("cut", () -> proxy.toxics().bandwidth("CUT_CONNECTION_DOWNSTREAM", ToxicDirection.DOWNSTREAM, 0));
    did("cut", () -> proxy.toxics().bandwidth("CUT_CONNECTION_UPSTREAM", ToxicDirection.UPSTREAM, 0));
    did("mend", () -> proxy.toxics().get("CUT_CONNECTION_DOWNSTREAM").remove());
    did("mend", () -> proxy.toxics().get("CUT_CONNECTION_UPSTREAM").remove());
    did("delete", proxy::delete);
    did("delete again", proxy::delete);
    said("getProxies", client::getProxies);
    System.out.println("done");
  }

  static void toxics(Proxy proxy) {
    Latency latency = (Latency) said("latency", () -> proxy.toxics().latency("slow", ToxicDirection.DOWNSTREAM, 100).setJitter(15));
    said("latency again", () -> proxy.toxics().latency("slow", ToxicDirection.DOWNSTREAM, 100));
    said("bandwidth", () -> proxy.toxics().bandwidth("narrow", ToxicDirection.UPSTREAM, 1000).setRate(2000));
    Slicer slicer = (Slicer) said("slicer", () -> proxy.toxics().slicer("pieces", ToxicDirection.DOWNSTREAM, 64, 10));
    said("slicer.set", () -> slicer.setSizeVariation(8).setDelay(20).setAverageSize(32));
    said("slowClose", () -> proxy.toxics().slowClose("late", ToxicDirection.UPSTREAM, 10).setDelay(20));
    said("timeout", () -> proxy.toxics().timeout("gone", ToxicDirection.UPSTREAM, 1000).setTimeout(2000));
    said("limitData", () -> proxy.toxics().limitData("short", ToxicDirection.DOWNSTREAM, 1024).setBytes(2048));
    said("resetPeer", () -> proxy.toxics().resetPeer("reset", ToxicDirection.DOWNSTREAM, 1000).setTimeout(2000));
    did("setToxicity", () -> latency.setToxicity(0.3f));
    said("getLatency", () -> latency.setLatency(250).getLatency() + " " + latency.getJitter() + " " + latency.getToxicity());
    said("getAll", () -> {
      List<? extends Toxic> all = proxy.toxics().getAll();
      return all.stream().sorted(Comparator.comparing(Toxic::getName)).toList();
    });
    said("get", () -> proxy.toxics().get("slow"));
    said("get typed", () -> proxy.toxics().get("slow", Latency.class).getLatency());
    said("get nobody", () -> proxy.toxics().get("nobody"));
    did("remove", latency::remove);
    did("remove again", latency::remove);
  }
}
