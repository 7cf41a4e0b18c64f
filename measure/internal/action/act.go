package action

import "github.com/noether-ml/noether/internal/simd"

// A Layout is the order of the values of a sample's feature maps.
type Layout struct {
	Channels int
	Planes   bool // channels are the first axis (c x h x w); else the last (h x w x c)
}

// Act writes tau z to dst at the counted positions, for a sample's activation z. dst and z have the
// given layout, hold nothing but positions (no class token, for instance), and do not overlap.
// Channel c is written to channel to[c], or to c if to is nil. If tau interpolates and floor is not
// nil, this sample's sums are added to floor.
func (f *Field) Act(dst, z []float32, l Layout, to []int32, floor *FloorSums) {
	if l.Planes {
		f.actOnPlanes(dst, z, len(z)/l.Channels, to, floor)
		return
	}
	f.actOnPositions(dst, z, l.Channels, to, floor)
}

func (f *Field) actOnPlanes(dst, z []float32, positions int, to []int32, floor *FloorSums) {
	if k := simd.Registered(); k != nil && f.interpolated() {
		f.actByKernel(k, dst, z, positions, to, floor)
		return
	}
	for c := range len(z) / positions {
		plane, target := z[c*positions:(c+1)*positions], c
		if to != nil {
			target = int(to[c])
		}
		result := dst[target*positions : (target+1)*positions]
		if f.Still {
			copy(result, plane)
			continue
		}
		f.forward.readPlane(result, plane)
		if !f.Exact && floor != nil {
			f.back.differPlane(result, plane, floor)
		}
	}
}

// actByKernel is actOnPlanes by a kernel, where values are interpolated.
func (f *Field) actByKernel(k simd.Kernels, dst, z []float32, positions int, to []int32, floor *FloorSums) {
	channels := len(z) / positions
	if to == nil {
		to = make([]int32, channels)
		for i := range to {
			to[i] = int32(i)
		}
	}
	var sums *[2]float64
	if floor != nil {
		sums = &[2]float64{}
	}
	k.Interpolate(dst, z, channels, positions, to, f.forward.kernel(), f.back.kernel(), sums)
	if floor != nil {
		floor.Difference += sums[0]
		floor.Norm += sums[1]
	}
}

func (t *taps) kernel() simd.Taps {
	return simd.Taps{Place: t.place, At: t.at, Fractions: t.fractions, Right: t.right, Down: t.down}
}

func (f *Field) actOnPositions(dst, z []float32, channels int, to []int32, floor *FloorSums) {
	if f.Still { // to is nil: callers permute channels only where positions move
		copy(dst, z)
		return
	}
	f.forward.readRows(dst, z, channels, to)
	if !f.Exact && floor != nil {
		f.back.differRows(dst, z, channels, to, floor)
	}
}

// FloorSums are the sums of |tau^-1 tau z - z|^2 and |z|^2 over counted positions. The root of
// their ratio is the floor.
type FloorSums struct{ Difference, Norm float64 }

func (s *FloorSums) add(restored, z []float32) {
	p := sumsOf(restored, z)
	s.Difference += p.Difference
	s.Norm += p.BB // |z|^2
}
