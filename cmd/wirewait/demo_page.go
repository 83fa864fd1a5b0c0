package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/proxy/admin"
)

// servePage opens the page beside the links and says where it is.
func (d *demo) servePage() (err error) {
	if d.page == "" {
		return nil
	}
	info, _ := debug.ReadBuildInfo()
	d.admin, err = admin.Start(admin.Config{Listen: d.page, Control: &admin.Control{
		Proxy: func() *proxy.Proxy { return d.proxy }, Waits: &d.summary, Slow: &d.slow, Version: moduleVersion(info),
	}})
	if err != nil {
		return portHint(err, "choose another port, or --admin off")
	}
	fmt.Fprintf(d.progress, "page    http://%s/ while it runs\n", d.admin.Addr())
	return nil
}

// closePage ends it at once: whoever still looks asks again and again.
func (d *demo) closePage(ctx context.Context) error {
	if d.admin == nil {
		return nil
	}
	now, cancel := context.WithCancel(ctx)
	cancel()
	if err := d.admin.Shutdown(now); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// demoPage reads --admin.
func demoPage(address string) (string, error) {
	if address == "off" {
		return "", nil
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return "", fmt.Errorf("--admin %q: write host:port, or off", address)
	}
	return address, nil
}
