package main

import (
	"io"
	"net"
	"testing"
)

// A wirewait that is killed keeps nobody waiting: the kernel closes what it had.
// What waited in its lines is lost, and no test can say that it isn't.
func TestRun_KilledEndsEveryConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	w := start(t, nil, "--upstream", listener.Addr().String(), "--protocol", "tcp", "--rtt", "1h")
	client, err := net.Dial("tcp", w.line(`link: (\S+) ->`)[1])
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if _, err := client.Write([]byte("for half an hour")); err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]net.Conn{"the client": client, "the server": server} {
		// It returns at all, by an end or by a reset.
		if b, err := io.ReadAll(c); len(b) > 0 {
			t.Errorf("%s got %q, %v", name, b, err)
		}
	}
	<-w.exited
}
