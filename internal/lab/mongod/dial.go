package mongod

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"runtime"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Names by which members' connections tell what they are for
// (src/mongo/executor, src/mongo/db/repl). Those of NetworkInterfaceTL are the
// driver's, that of the fetcher is the application's.
const (
	driverHeartbeats = "NetworkInterfaceTL-ReplNetwork"
	driverReports    = "NetworkInterfaceTL-ReplCoordExternNetwork"
	driverFetcher    = "MongoDB Internal Client"
	appFetcher       = "OplogFetcher"
)

// peerConn is a connection to another member. One user at a time.
type peerConn struct {
	s          *Server
	c          net.Conn
	r          *bufio.Reader
	compressor byte
	stop       func() bool // ends what closes it with the context
}

// dialPeer connects to another member and says who it is. The connection ends
// with the context.
func (s *Server) dialPeer(ctx context.Context, to int, driver, application string) (*peerConn, error) {
	timed, cancel := context.WithTimeout(ctx, heartbeatTimeout)
	defer cancel()
	c, err := s.member.dialer().DialContext(timed, "tcp", s.member.dialAddr(to))
	if err != nil {
		return nil, err
	}
	p := &peerConn{s: s, c: c, r: bufio.NewReader(c)}
	p.stop = context.AfterFunc(ctx, func() { c.Close() })
	reply, err := p.call(ctx, heartbeatTimeout, s.internalHello(driver, application))
	if err != nil {
		p.close()
		return nil, fmt.Errorf("greet %s: %w", c.RemoteAddr(), err)
	}
	if chosen, err := reply.LookupErr("compression", "0"); err == nil {
		name, _ := chosen.StringValueOK()
		for i, n := range compressorNames {
			if n != "" && n == name {
				p.compressor = byte(i)
			}
		}
	}
	return p, nil
}

// internalHello is a member's first message to another, as 8.0.28 was seen to send
// it (src/mongo/rpc/metadata/client_metadata.cpp for client).
func (s *Server) internalHello(driver, application string) bson.D {
	client := bson.D{}
	if application != "" {
		client = append(client, bson.E{Key: "application", Value: bson.D{{Key: "name", Value: application}}})
	}
	client = append(client,
		bson.E{Key: "driver", Value: bson.D{{Key: "name", Value: driver}, {Key: "version", Value: version}}},
		bson.E{Key: "os", Value: bson.D{{Key: "type", Value: runtime.GOOS}, {Key: "architecture", Value: runtime.GOARCH}}})
	d := bson.D{{Key: "hello", Value: int32(1)}, {Key: "client", Value: client}}
	if !s.member.set.options.NoHostInfo {
		d = append(d, bson.E{Key: "hostInfo", Value: s.member.Host()})
	}
	if names := s.options.Compressors; len(names) > 0 {
		offered := bson.A{}
		for _, n := range names {
			offered = append(offered, n)
		}
		d = append(d, bson.E{Key: "compression", Value: offered})
	}
	return append(d,
		bson.E{Key: "internalClient", Value: bson.D{{Key: "minWireVersion", Value: int32(6)}, {Key: "maxWireVersion", Value: int32(wireVersion)}}},
		bson.E{Key: "hangUpOnStepDown", Value: false},
		bson.E{Key: "saslSupportedMechs", Value: "local.__system"},
		bson.E{Key: "$db", Value: "admin"})
}

func (p *peerConn) close() {
	p.stop()
	p.c.Close()
}

// call sends a command and returns its reply. An error reply is an error.
func (p *peerConn) call(ctx context.Context, timeout time.Duration, command bson.D) (bson.Raw, error) {
	if err := p.send(ctx, command, 0); err != nil {
		return nil, err
	}
	reply, _, err := p.receive(timeout)
	return reply, err
}

// send writes a command: compressed if that was agreed on, else with a checksum,
// as members do (src/mongo/client/async_client.cpp).
func (p *peerConn) send(ctx context.Context, command bson.D, flags uint32) error {
	if err := p.s.gate.pass(ctx); err != nil {
		return err
	}
	raw, err := bson.Marshal(command)
	if err != nil {
		return err
	}
	b, _, err := p.s.codec.encode(frame{op: opMsg, flags: flags, compressor: p.compressor, checksum: p.compressor == 0}, raw)
	if err != nil {
		return err
	}
	if err := p.c.SetWriteDeadline(time.Now().Add(heartbeatTimeout)); err != nil {
		return err
	}
	_, err = p.c.Write(b)
	return err
}

// receive reads a reply. more says that another follows without being asked for.
func (p *peerConn) receive(timeout time.Duration) (reply bson.Raw, more bool, err error) {
	if err := p.c.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return nil, false, err
	}
	m, err := p.s.codec.read(p.r)
	if err != nil {
		return nil, false, err
	}
	if ok, _ := m.body.Lookup("ok").AsFloat64OK(); ok != 1 {
		code, _ := m.body.Lookup("code").AsInt64OK()
		name, _ := m.body.Lookup("codeName").StringValueOK()
		text, _ := m.body.Lookup("errmsg").StringValueOK()
		return nil, false, &commandError{code: int32(code), name: name, message: text}
	}
	return m.body, m.flags&flagMoreToCome != 0, nil
}

// gossiped ends a command with what members tell each other in every one.
func (s *Server) gossiped(d bson.D, db string) bson.D {
	s.mu.Lock()
	ts := s.set.written.TS
	s.mu.Unlock()
	return append(d, bson.E{Key: "$clusterTime", Value: bson.D{{Key: "clusterTime", Value: ts}}}, bson.E{Key: "$db", Value: db})
}
