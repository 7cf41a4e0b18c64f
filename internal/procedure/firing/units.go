package firing

import (
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/tensor"
)

// A unitSet describes which values of a layer are its units.
type unitSet struct {
	shape         []int       // of one sample
	axes          tensor.Axes // of shape: C channels, H rows, W columns, T tokens or time
	channels      int         // number of channels
	positions     int         // number of positions of a channel
	channelsFirst bool        // whether channels are the first axis
	picked        []int       // positions whose values are units; nil: all
	maxima        bool        // whether a unit is the maximum of a channel
}

// newUnitSet selects units by Settings.Positions: all values; a number of random positions, the
// same for all channels; or the maxima of the channels.
func newUnitSet(l tensor.Layer, s Settings, studySeed uint64) *unitSet {
	u := &unitSet{shape: l.Shape, channels: tensor.Size(l.Shape), positions: 1, channelsFirst: true}
	if len(l.Axes) > 0 {
		u.axes = l.Axes[1:] // without the batch
	}
	last := len(l.Shape) - 1
	switch at := strings.IndexByte(string(u.axes), 'C'); {
	// a vector, channels between other axes, or unknown axes: every value is a channel
	case last < 1 || len(u.axes) != len(l.Shape):
	case at == 0:
		u.channels, u.positions = l.Shape[0], tensor.Size(l.Shape[1:])
	case strings.LastIndexByte(string(u.axes), 'C') == last:
		u.channels, u.positions, u.channelsFirst = l.Shape[last], tensor.Size(l.Shape[:last]), false
	}
	u.maxima = s.Positions == Channels && u.positions > 1
	if n, err := s.positions(); err == nil && n > 0 && n < u.positions {
		u.picked = seed.Rand(studySeed, "firing: positions", l.Name).Perm(u.positions)[:n]
		slices.Sort(u.picked)
	}
	return u
}

func (u *unitSet) count() int {
	switch {
	case u.maxima:
		return u.channels
	case u.picked != nil:
		return u.channels * len(u.picked)
	}
	return u.channels * u.positions
}

// read returns the units of b samples, b x count. It returns z.Data if every value is a unit, else
// dst, reallocated if too small.
func (u *unitSet) read(dst []float32, z tensor.Tensor) []float32 {
	if !u.maxima && u.picked == nil {
		return z.Data
	}
	b, n := z.Shape[0], u.count()
	dst = slices.Grow(dst[:0], b*n)[:b*n]
	for i := range b {
		to, from := dst[i*n:(i+1)*n], z.At(i).Data
		if u.maxima {
			u.readMaxima(to, from)
			continue
		}
		for k := range to {
			to[k] = from[u.flat(k)]
		}
	}
	return dst
}

func (u *unitSet) readMaxima(dst, z []float32) {
	if u.channelsFirst {
		for c := range dst {
			dst[c] = slices.Max(z[c*u.positions : (c+1)*u.positions])
		}
		return
	}
	copy(dst, z[:u.channels])
	for p := 1; p < u.positions; p++ {
		for c, v := range z[p*u.channels : (p+1)*u.channels] {
			dst[c] = max(dst[c], v)
		}
	}
}

// flat returns the index of unit i among the values of one sample. It does not apply to maxima.
func (u *unitSet) flat(i int) int {
	if u.picked == nil {
		return i
	}
	k := len(u.picked)
	if u.channelsFirst {
		return i/k*u.positions + u.picked[i%k]
	}
	return u.picked[i/u.channels]*u.channels + i%u.channels
}

// coordinates returns -1 for row and column if the layer has none. A position in time, or of a
// token, is a row.
func (u *unitSet) coordinates(i int) (channel, row, column int) {
	if u.maxima {
		return i, -1, -1
	}
	at, row, column := u.flat(i), -1, -1
	position := 0
	if u.channelsFirst {
		channel, position = at/u.positions, at%u.positions
	} else {
		channel, position = at%u.channels, at/u.channels
	}
	for axis := len(u.shape) - 1; axis >= 0 && u.positions > 1; axis-- {
		if axis == 0 && u.channelsFirst || axis == len(u.shape)-1 && !u.channelsFirst {
			continue
		}
		size := u.shape[axis]
		switch u.axes[axis] {
		case 'W':
			column = position % size
		case 'H', 'T':
			row = position % size
		}
		position /= size
	}
	return channel, row, column
}
