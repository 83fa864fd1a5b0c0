package admin

import (
	"fmt"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// Delay is what a link adds, in the units of the configuration file.
type Delay struct {
	RTT      string `json:"rtt"`
	ToServer OneWay `json:"to_server"`
	ToClient OneWay `json:"to_client"`
	// Connect says whether connecting costs what it would.
	Connect bool `json:"connect"`
}

// OneWay is one direction of a Delay. What a wire doesn't have is left out.
type OneWay struct {
	Delay        string `json:"delay"`
	Jitter       string `json:"jitter,omitempty"`
	Distribution string `json:"distribution,omitempty"`
	Correlation  string `json:"correlation,omitempty"`
	// Loss is the share of segments lost in the long run.
	Loss         string `json:"loss,omitempty"`
	LossInBursts bool   `json:"loss_in_bursts,omitempty"`
	Bandwidth    string `json:"bandwidth,omitempty"`
	// PerConnection: each connection has the bandwidth, instead of all together.
	PerConnection bool   `json:"per_connection,omitempty"`
	Window        string `json:"window,omitempty"`
}

// DescribeDelay puts a delay in the words of /v1.
func DescribeDelay(s inject.Settings) Delay {
	return Delay{
		RTT:      s.RTT().String(),
		ToServer: describeOneWay(&s.Delay[wire.ToServer]), ToClient: describeOneWay(&s.Delay[wire.ToClient]),
		Connect: !s.FreeConnect,
	}
}

func describeOneWay(d *inject.Delay) OneWay {
	o := OneWay{Delay: d.Base.String()}
	if d.Jitter > 0 {
		o.Jitter = d.Jitter.String()
		if o.Distribution = d.Distribution.String(); d.Table != nil {
			o.Distribution = "table"
		}
	}
	if d.Correlation > 0 {
		o.Correlation = percent(d.Correlation)
	}
	if rate := d.Loss.Rate(); rate > 0 {
		o.Loss, o.LossInBursts = percent(rate), d.Loss.P > 0
	}
	if d.Bandwidth > 0 {
		o.Bandwidth, o.PerConnection = fmt.Sprintf("%dbit/s", d.Bandwidth), d.PerConnection
	}
	if d.Window > 0 {
		o.Window = fmt.Sprintf("%dB", d.Window)
	}
	return o
}

func percent(f float64) string { return fmt.Sprintf("%.6g%%", 100*f) }
