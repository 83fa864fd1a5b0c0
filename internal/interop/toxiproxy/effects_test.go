package toxiproxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestEffects: what clients count on must hold with both servers.
func TestEffects(t *testing.T) {
	for _, e := range effects {
		for _, k := range kinds {
			t.Run(strings.ReplaceAll(e.name, " ", "_")+"/"+k.name, func(t *testing.T) {
				t.Parallel()
				s := start(t, k.real)
				if err := e.check(t, s); err != nil {
					t.Errorf("%v\n%s", err, s.process.Log.String())
				}
			})
		}
	}
}

var effects = []struct {
	name  string
	check func(t *testing.T, s *server) error
}{
	{"latencies add up", func(t *testing.T, s *server) error {
		c := dial(t, s.proxy(t, "p", echo(t)))
		s.toxic(t, "p", `{"name":"a","type":"latency","attributes":{"latency":100}}`)
		s.toxic(t, "p", `{"name":"b","type":"latency","attributes":{"latency":100}}`)
		s.toxic(t, "p", `{"name":"c","type":"latency","stream":"upstream","attributes":{"latency":100}}`)
		return takes(300*time.Millisecond, func() error { return echoes(c, "x") })
	}},
	{"jitter stays within its bounds", func(t *testing.T, s *server) error {
		c := dial(t, s.proxy(t, "p", echo(t)))
		s.toxic(t, "p", `{"type":"latency","attributes":{"latency":50,"jitter":20}}`)
		for range 10 {
			if err := takes(30*time.Millisecond, func() error { return echoes(c, "x") }); err != nil {
				return err
			}
		}
		return nil
	}},
	{"a rate", func(t *testing.T, s *server) error {
		c := dial(t, s.proxy(t, "p", echo(t)))
		s.toxic(t, "p", `{"type":"bandwidth","attributes":{"rate":100}}`)
		return takes(300*time.Millisecond, func() error { return echoes(c, strings.Repeat("x", 50_000)) })
	}},
	{"a rate of 0 keeps what it gets", func(t *testing.T, s *server) error {
		c := dial(t, s.proxy(t, "p", echo(t)))
		// as Testcontainers cuts a connection
		s.toxic(t, "p", `{"name":"CUT_CONNECTION_DOWNSTREAM","type":"bandwidth","attributes":{"rate":0}}`)
		s.toxic(t, "p", `{"name":"CUT_CONNECTION_UPSTREAM","type":"bandwidth","stream":"upstream","attributes":{"rate":0}}`)
		if err := silent(c, "kept"); err != nil {
			return err
		}
		s.do(t, "DELETE", "/proxies/p/toxics/CUT_CONNECTION_DOWNSTREAM", "")
		s.do(t, "DELETE", "/proxies/p/toxics/CUT_CONNECTION_UPSTREAM", "")
		return arrives(c, "kept")
	}},
	{"a rate that is raised", func(t *testing.T, s *server) error {
		c := dial(t, s.proxy(t, "p", echo(t)))
		s.toxic(t, "p", `{"name":"t","type":"bandwidth","attributes":{"rate":0}}`)
		if err := silent(c, "kept"); err != nil {
			return err
		}
		s.do(t, "PATCH", "/proxies/p/toxics/t", `{"attributes":{"rate":1000}}`)
		return arrives(c, "kept")
	}},
	{"timeout", func(t *testing.T, s *server) error {
		c := dial(t, s.proxy(t, "p", echo(t)))
		return takes(200*time.Millisecond, func() error { // from when the toxic came
			s.toxic(t, "p", `{"type":"timeout","attributes":{"timeout":200}}`)
			return ended(c, "lost")
		})
	}},
	{"timeout without end and without the toxic", func(t *testing.T, s *server) error {
		c := dial(t, s.proxy(t, "p", echo(t)))
		s.toxic(t, "p", `{"name":"t","type":"timeout","attributes":{"timeout":0}}`)
		if err := silent(c, "lost"); err != nil {
			return err
		}
		s.do(t, "DELETE", "/proxies/p/toxics/t", "")
		return ended(c, "")
	}},
	{"reset_peer", func(t *testing.T, s *server) error {
		addr := s.proxy(t, "p", echo(t))
		s.toxic(t, "p", `{"type":"reset_peer","attributes":{"timeout":100}}`)
		c := dial(t, addr)
		return takes(90*time.Millisecond, func() error { return wantEnd(c, "lost", syscall.ECONNRESET) })
	}},
	{"limit_data", func(t *testing.T, s *server) error {
		addr := s.proxy(t, "p", serve(t, func(c *net.TCPConn) { _, _ = io.WriteString(c, strings.Repeat("0123456789", 1000)) }))
		s.toxic(t, "p", `{"type":"limit_data","attributes":{"bytes":1234}}`)
		return all(dial(t, addr), strings.Repeat("0123456789", 1000)[:1234])
	}},
	{"slicer", func(t *testing.T, s *server) error {
		c := dial(t, s.proxy(t, "p", echo(t)))
		s.toxic(t, "p", `{"type":"slicer","attributes":{"average_size":10,"size_variation":2,"delay":20000}}`)
		return takes(100*time.Millisecond, func() error { return echoes(c, strings.Repeat("0123456789", 10)) })
	}},
	{"slow_close", func(t *testing.T, s *server) error {
		addr := s.proxy(t, "p", serve(t, func(c *net.TCPConn) { _, _ = io.WriteString(c, "bye") }))
		s.toxic(t, "p", `{"type":"slow_close","attributes":{"delay":300}}`)
		return takes(300*time.Millisecond, func() error { return all(dial(t, addr), "bye") })
	}},
	{"slow_close without the toxic", func(t *testing.T, s *server) error {
		addr := s.proxy(t, "p", serve(t, func(c *net.TCPConn) { _, _ = io.WriteString(c, "bye") }))
		s.toxic(t, "p", `{"name":"t","type":"slow_close","attributes":{"delay":3600000}}`)
		c := dial(t, addr)
		if err := arrives(c, "bye"); err != nil {
			return err
		}
		if err := silent(c, ""); err != nil {
			return err
		}
		s.do(t, "DELETE", "/proxies/p/toxics/t", "")
		return ended(c, "")
	}},
	{"a toxicity of 0", func(t *testing.T, s *server) error {
		addr := s.proxy(t, "p", serve(t, func(c *net.TCPConn) { _, _ = io.WriteString(c, "all of it") }))
		s.toxic(t, "p", `{"type":"limit_data","toxicity":0,"attributes":{"bytes":1}}`)
		s.toxic(t, "p", `{"type":"timeout","toxicity":0,"attributes":{"timeout":1}}`)
		s.toxic(t, "p", `{"type":"bandwidth","toxicity":0,"attributes":{"rate":0}}`)
		return all(dial(t, addr), "all of it")
	}},
	{"noop", func(t *testing.T, s *server) error {
		c := dial(t, s.proxy(t, "p", echo(t)))
		s.toxic(t, "p", `{"type":"noop"}`)
		return echoes(c, "through")
	}},
	{"off and on again", func(t *testing.T, s *server) error {
		addr := s.proxy(t, "p", echo(t))
		c := dial(t, addr)
		if err := echoes(c, "on"); err != nil {
			return err
		}
		s.do(t, "POST", "/proxies/p", `{"enabled":false}`)
		if err := ended(c, ""); err != nil {
			return err
		}
		if _, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("dialling it while it's off: %v", err)
		}
		s.do(t, "POST", "/proxies/p", `{"enabled":true}`)
		return echoes(dial(t, addr), "on again")
	}},
	{"a proxy that is deleted", func(t *testing.T, s *server) error {
		addr := s.proxy(t, "p", echo(t))
		c := dial(t, addr)
		if err := echoes(c, "there"); err != nil {
			return err
		}
		s.do(t, "DELETE", "/proxies/p", "")
		if _, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("dialling it when it's gone: %v", err)
		}
		return ended(c, "")
	}},
	{"another upstream", func(t *testing.T, s *server) error {
		addr := s.proxy(t, "p", echo(t))
		c := dial(t, addr)
		if err := echoes(c, "first"); err != nil {
			return err
		}
		other := serve(t, func(c *net.TCPConn) { _, _ = io.WriteString(c, "second") })
		s.do(t, "POST", "/proxies/p", `{"upstream":"`+other+`"}`)
		if err := ended(c, ""); err != nil {
			return err
		}
		return all(dial(t, addr), "second")
	}},
	{"connections outlive what changes nothing", func(t *testing.T, s *server) error {
		upstream := echo(t)
		addr := s.proxy(t, "p", upstream)
		c := dial(t, addr)
		_, port, _ := net.SplitHostPort(addr)
		for _, do := range []string{
			`POST /proxies/p {"listen":"localhost:` + port + `"}`,
			`POST /populate [{"name":"p","listen":"localhost:` + port + `","upstream":"` + upstream + `"}]`,
			`POST /proxies/p/toxics {"name":"t","type":"latency","attributes":{"latency":1}}`,
			`POST /proxies/p/toxics/t {"toxicity":0}`,
			`POST /reset`,
		} {
			method, rest, _ := strings.Cut(do, " ")
			path, body, _ := strings.Cut(rest, " ")
			s.do(t, method, path, body)
			if err := echoes(c, "open"); err != nil {
				return fmt.Errorf("after %s: %w", do, err)
			}
		}
		return nil
	}},
	{"an upstream that refuses", func(t *testing.T, s *server) error {
		// wirewait passes the refusal on as a reset, which may come while dialling
		c, err := net.Dial("tcp", s.proxy(t, "p", "127.0.0.1:1"))
		if errors.Is(err, syscall.ECONNRESET) {
			return nil
		}
		if err != nil {
			return err
		}
		defer c.Close()
		return ended(c.(*net.TCPConn), "")
	}},
}

// takes wants do to take so long at least.
func takes(least time.Duration, do func() error) error {
	began := time.Now()
	if err := do(); err != nil {
		return err
	}
	if took := time.Since(began); took < least {
		return fmt.Errorf("it took %v, want at least %v", took, least)
	}
	return nil
}

// silent sends text and wants no answer for a while.
func silent(c *net.TCPConn, text string) error {
	if _, err := io.WriteString(c, text); err != nil {
		return err
	}
	_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if n, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%d bytes and %v came, want nothing", n, err)
	}
	return nil
}

// arrives wants text next.
func arrives(c *net.TCPConn, text string) error {
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	got := make([]byte, len(text))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != text {
		return fmt.Errorf("%q and %v came, want %q", got, err, text)
	}
	return nil
}

// all wants text and then the end.
func all(c *net.TCPConn, text string) error {
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	if got, err := io.ReadAll(c); err != nil || string(got) != text {
		return fmt.Errorf("%d bytes and %v came, want %d", len(got), err, len(text))
	}
	return nil
}

// ended sends text and wants the connection to end somehow, without a byte.
func ended(c *net.TCPConn, text string) error {
	_, _ = io.WriteString(c, text)
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := c.Read(make([]byte, 1)); n != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%d bytes and %v came, want the end", n, err)
	}
	return nil
}
