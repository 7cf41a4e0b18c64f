package similarity

import (
	"strings"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A unit is a layer as it is compared: its values flattened, or the means of its channels.
type unit struct {
	layer onnx.Layer
	side  measure.Side
	index int // of the layer on its side
	p     int // variables
	// Values are outer x channels x inner; outer is 0 where they are taken as they are.
	outer, channels, inner int
}

func unitOf(l onnx.Layer, s Settings) unit {
	u := unit{layer: l, p: tensor.Size(l.Shape)}
	axes := string(l.Axes)
	c := strings.IndexByte(axes, 'C')
	if s.Pool != "mean" || c < 1 || strings.Count(axes, "C") != 1 || len(axes) != len(l.Shape)+1 {
		return u
	}
	u.outer, u.channels, u.inner = tensor.Size(l.Shape[:c-1]), l.Shape[c-1], tensor.Size(l.Shape[c:])
	u.p = u.channels
	return u
}

// rows appends the variables of samples to dst.
func (u unit) rows(dst []float32, z tensor.Tensor) []float32 {
	if u.outer == 0 {
		return append(dst, z.Data...)
	}
	size := u.outer * u.channels * u.inner
	for data := z.Data; len(data) > 0; data = data[size:] {
		for c := range u.channels {
			var sum float64
			for o := range u.outer {
				for _, v := range data[(o*u.channels+c)*u.inner : (o*u.channels+c+1)*u.inner] {
					sum += float64(v)
				}
			}
			dst = append(dst, float32(sum/float64(u.outer*u.inner)))
		}
	}
	return dst
}

// unitsOf lists the different layers of a grid, and which of them those of either side are: a layer on both sides of one model is one.
func unitsOf(g measure.Grid, s Settings) (units []unit, of [2][]int) {
	at := map[string]int{}
	for side, list := range [][]onnx.Layer{g.A, g.B} {
		for i, l := range list {
			if u, ok := at[l.Name]; ok && g.Self && side == 1 {
				of[side] = append(of[side], u)
				continue
			}
			if side == 0 {
				at[l.Name] = len(units)
			}
			u := unitOf(l, s)
			u.side, u.index = measure.Side(side), i
			of[side] = append(of[side], len(units))
			units = append(units, u)
		}
	}
	return units, of
}
