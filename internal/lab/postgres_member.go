package lab

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// PostgresNode is a server of a PostgresCluster. It keeps its address and its
// files when it stops and starts again.
type PostgresNode struct {
	name string
	site *workspace
	node *node
}

// Name is "primary", or a standby's application name.
func (n *PostgresNode) Name() string { return n.name }

// Addr is the node's TCP address, below port 32768; see Postgres.Addr.
func (n *PostgresNode) Addr() string { return n.node.addr() }

// DataDir is the node's data directory; only the server's user may read it.
func (n *PostgresNode) DataDir() string { return n.node.dir }

// Log is the node's log so far.
func (n *PostgresNode) Log() string { return n.node.log() }

// Stop shuts the server down in order. It does nothing to one that has ended.
func (n *PostgresNode) Stop() error {
	if err := n.node.stop(); err != nil {
		return fmt.Errorf("stop %s: %w", n.name, err)
	}
	return nil
}

// Kill ends the server and all its processes at once, as a crash would: no
// checkpoint, no farewell to clients, recovery at the next start.
func (n *PostgresNode) Kill() error {
	n.node.process.signal(syscall.SIGQUIT)
	if n.node.process.wait(immediateStop) {
		return nil
	}
	n.node.process.kill()
	if !n.node.process.wait(immediateStop) {
		return fmt.Errorf("%s (pid %d) can't be killed", n.name, n.node.process.pid())
	}
	return nil
}

// Start starts the server again after Stop or Kill, and returns when it accepts
// connections.
func (n *PostgresNode) Start(ctx context.Context) error {
	select {
	case <-n.node.process.done:
	default:
		return fmt.Errorf("%s is running already", n.name)
	}
	if err := n.site.launch(ctx, n.node); err != nil {
		return errors.Join(fmt.Errorf("start %s again: %w", n.name, err), n.node.stop())
	}
	return nil
}
