package proxy

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/wirewait/wirewait/inject"
)

// SetDelays changes the delays of several links, named by the keys, or of none:
// the error names every link that there is not and every delay that can't be.
// Connections that exist feel it from the next read on; see Link.SetDelay.
func (p *Proxy) SetDelays(changes map[string]DelayPatch) error {
	p.reloading.Lock() // two changes of the same link follow each other
	defer p.reloading.Unlock()
	next := make(map[*source]inject.Settings, len(changes))
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		l := p.Link(name)
		if l == nil {
			errs = append(errs, fmt.Errorf("there is no link %s", name))
			continue
		}
		if err := l.plan(changes[name], next); err != nil {
			errs = append(errs, fmt.Errorf("link %s: %w", name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for of, s := range next {
		of.settings.Store(&s)
	}
	return nil
}

// plan adds what becomes of the link's delay to next. Where several dial it,
// each of them keeps what isn't changed.
func (l *Link) plan(change DelayPatch, next map[*source]inject.Settings) error {
	r := l.route.Load()
	for _, of := range append([]*source{r.base}, r.sources.all...) {
		s, err := change.Apply(*of.settings.Load())
		if err != nil {
			return err
		}
		next[of] = s
	}
	return nil
}

// SourceDelay is what a link adds to the connections of one who dials it.
type SourceDelay struct {
	Name  string
	Delay inject.Settings
}

// SourceDelays are those of all who dial the link, where there are several; else
// nil: Delay has it.
func (l *Link) SourceDelays() (list []SourceDelay) {
	for _, of := range l.route.Load().sources.all {
		list = append(list, SourceDelay{of.name, *of.settings.Load()})
	}
	return list
}
