package trace

import "io"

// Waterfall draws one exchange as bars, at most width columns wide.
func Waterfall(w io.Writer, f *Finished, width int) {}
