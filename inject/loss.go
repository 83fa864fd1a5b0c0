package inject

import "time"

// SegmentSize is what a TCP segment carries over Ethernet: 1,500 bytes less the
// headers of IPv4 and TCP, with timestamps. Loss is drawn for each.
const SegmentSize = 1448

// Loss is the model of Gilbert and Elliott: a chain with a good and a bad
// state, which takes one step for each segment that is sent, repeats included.
//
//	        P
//	  +------------>+
//	good           bad        a segment is lost with probability Good or Bad,
//	  +<------------+         by the state that the step begins in
//	        R
//
// tc-netem writes it `loss gemodel p r 1-h 1-k`: P, R, Bad, Good. The rate in
// the long run is (R*Good + P*Bad) / (P + R); with Bad 1 and Good 0, bursts of
// 1/R segments on average. Every connection's direction has a chain of its own,
// which begins in the good state. The zero value loses nothing. Source: Linux,
// net/sched/sch_netem.c, loss_gilb_ell.
type Loss struct{ P, R, Bad, Good float64 }

// RandomLoss loses each segment with the probability given, whatever happened to
// the others.
func RandomLoss(rate float64) Loss { return Loss{Good: rate} }

// Rate is the part of all segments that is lost in the long run.
func (l Loss) Rate() float64 {
	if l.P <= 0 {
		return l.Good
	}
	return (l.R*l.Good + l.P*l.Bad) / (l.P + l.R)
}

// And is the loss of two wires in a row. Where both lose segments, they are lost
// at random: the chains of bursts don't add up to one.
func (l Loss) And(o Loss) Loss {
	switch {
	case o.none():
		return l
	case l.none():
		return o
	}
	return RandomLoss(1 - (1-l.Rate())*(1-o.Rate()))
}

func (l *Loss) none() bool { return l.P <= 0 && l.Good <= 0 }

// How TCP repeats what was lost, as Linux does:
const (
	// minRTO is what a retransmission time-out has on top of the round trip (on
	// a path without jitter RTO = SRTT + TCP_RTO_MIN: net/ipv4/tcp_input.c,
	// tcp_rtt_estimator); it doubles up to maxRTO (TCP_RTO_MAX).
	minRTO = 200 * time.Millisecond
	maxRTO = 120 * time.Second
	// dupAcks is how many later segments must arrive for the lost one to be
	// repeated at once (RFC 5681, section 3.2).
	dupAcks = 3
	// maxRetries is where TCP would give the connection up (tcp_retries2): here
	// the segment then arrives, since bytes are never missing.
	maxRetries = 15
)

// lost takes one step of the chain.
func (s *Source) lost(l *Loss) bool {
	p := l.Good
	switch {
	case l.P <= 0:
		s.bad = false // whatever the settings were before
	case s.bad:
		p = l.Bad
		s.bad = !(s.chance() < l.R)
	default:
		s.bad = s.chance() < l.P
	}
	return p > 0 && s.chance() < p
}

// chance draws from [0, 1).
func (s *Source) chance() float64 { return float64(s.loss.Uint64()>>11) * 0x1p-53 }

// recovery draws how much later a segment arrives for being lost: 0 if it isn't.
// When at least three segments follow, it's repeated after one round trip; when
// fewer do, or the repeat is lost as well, after a time-out that doubles.
func (s *Source) recovery(l *Loss, rtt time.Duration, followers int) (late time.Duration) {
	if !s.lost(l) {
		return 0
	}
	rtt = max(min(rtt, maxDelay), 0)
	if followers >= dupAcks {
		if late = rtt; !s.lost(l) {
			return late
		}
	}
	rto := min(rtt+minRTO, max(maxRTO, rtt))
	for range maxRetries {
		late = min(late+rto, maxDelay)
		if !s.lost(l) {
			break
		}
		rto = min(2*rto, max(maxRTO, rtt))
	}
	return late
}
