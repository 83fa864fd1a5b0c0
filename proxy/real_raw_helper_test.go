//go:build unix

package proxy_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// raw speaks to PostgreSQL message by message, so that it can say what no driver
// would.
type raw struct {
	t *testing.T
	net.Conn
	r   *bufio.Reader
	key []byte // BackendKeyData: the process id and the secret
}

// versions of the protocol, as a StartupMessage asks for them.
const (
	version30 = 3 << 16
	version32 = version30 | 2
)

// dialRaw connects and sends nothing. Whatever hangs ends with the deadline.
func dialRaw(t *testing.T, addr string) *raw {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
	return &raw{t: t, Conn: c, r: bufio.NewReaderSize(c, 64<<10)}
}

// startRaw is a session of the superuser, which the server trusts.
func startRaw(t *testing.T, addr string, parameters ...string) *raw {
	t.Helper()
	c := dialRaw(t, addr)
	c.send(rawStartup(version30, append([]string{"user", "postgres"}, parameters...)...))
	if said := c.until("Z"); !strings.HasSuffix(said, "Z(I)") {
		t.Fatalf("the session begins with %s", said)
	}
	return c
}

func (c *raw) send(messages ...[]byte) {
	c.t.Helper()
	if _, err := c.Write(bytes.Join(messages, nil)); err != nil {
		c.t.Fatal(err)
	}
}

// answer is the one byte that answers a request for encryption.
func (c *raw) answer() string {
	c.t.Helper()
	b, err := c.r.ReadByte()
	if err != nil {
		c.t.Fatal(err)
	}
	return string(b)
}

// said reads n messages and renders them. Notices count for none of them; a row
// after a row, or COPY data after COPY data, is one.
func (c *raw) said(n int) string {
	var words []string
	for last := ""; len(words) < n; {
		word := c.word()
		if word == "N" || word == last && (word == "D" || word == "d") {
			continue
		}
		words, last = append(words, word), word
		if word == "EOF" {
			break
		}
	}
	return strings.Join(words, " ")
}

// until reads up to a message of that type, or the end.
func (c *raw) until(kind string) string {
	var words []string
	for {
		word := c.word()
		words = append(words, word)
		if strings.HasPrefix(word, kind) || word == "EOF" {
			return strings.Join(words, " ")
		}
	}
}

// word is the next message: its type, and what tells it from others of the type.
func (c *raw) word() string {
	kind, body, err := c.next()
	if err != nil {
		return "EOF"
	}
	switch kind {
	case 'C', 'Z':
		return fmt.Sprintf("%c(%s)", kind, strings.TrimRight(string(body), "\x00"))
	case 'E':
		return fmt.Sprintf("E(%s %s)", errorField(body, 'V'), errorField(body, 'C'))
	case 'R':
		return fmt.Sprintf("R(%d)", binary.BigEndian.Uint32(body))
	case 'K':
		c.key = body
		return fmt.Sprintf("K(%d)", len(body))
	case 'v':
		return fmt.Sprintf("v(%x %q)", body[:4], strings.Trim(string(body[8:]), "\x00"))
	}
	return string(kind)
}

func (c *raw) next() (kind byte, body []byte, err error) {
	var header [5]byte
	if _, err = io.ReadFull(c.r, header[:]); err != nil {
		return 0, nil, err
	}
	body = make([]byte, binary.BigEndian.Uint32(header[1:])-4)
	_, err = io.ReadFull(c.r, body)
	return header[0], body, err
}

func errorField(body []byte, kind byte) string {
	for field := range bytes.SplitSeq(body, []byte{0}) {
		if len(field) > 0 && field[0] == kind {
			return string(field[1:])
		}
	}
	return ""
}

// strings, each with a NUL behind it.
func terminated(parts ...string) string { return strings.Join(parts, "\x00") + "\x00" }

func message(kind byte, body string) []byte {
	return postgresMessage(kind, uint32(4+len(body)), body)
}

func packet(code uint32, body string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(8+len(body)))
	return append(binary.BigEndian.AppendUint32(b, code), body...)
}

func rawStartup(version uint32, parameters ...string) []byte {
	return packet(version, terminated(parameters...)+"\x00")
}

func query(sql string) []byte       { return message('Q', terminated(sql)) }
func parse(name, sql string) []byte { return message('P', terminated(name, sql)+"\x00\x00") }
func bind(portal, name string) []byte {
	return message('B', terminated(portal, name)+strings.Repeat("\x00", 6))
}
func execute(portal string, rows byte) []byte {
	return message('E', terminated(portal)+"\x00\x00\x00"+string(rune(rows)))
}

// pbe is Parse, Bind and Execute of unnamed ones.
func pbe(sql string) []byte {
	return bytes.Join([][]byte{parse("", sql), bind("", ""), execute("", 0)}, nil)
}

// call is a FunctionCall with arguments and result as text.
func call(oid uint32, arguments ...string) []byte {
	b := binary.BigEndian.AppendUint32(nil, oid)
	b = append(b, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(len(arguments)))
	for _, a := range arguments {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(a))), a...)
	}
	return message('F', string(append(b, 0, 0)))
}

var (
	synced  = message('S', "")
	flushed = message('H', "")
	data    = message('d', "1\n")
	done    = message('c', "")
)
