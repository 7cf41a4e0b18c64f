package seis

import (
	"fmt"
	"testing"

	"github.com/noether-ml/noether/tensor"
)

// TestPooling compares the average-pooled feature maps of each order of axes with means that are
// computed by their definition. The orders have a letter for each axis: batch (N, which shape
// leaves out), channels (C), height, width, and time or tokens (T).
func TestPooling(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		axes  tensor.Axes
		shape []int
		limit int // largest number of positions after pooling
	}{
		{"NCHW", []int{3, 13, 9}, 30},
		{"NCHW", []int{2, 8, 8}, 16},
		{"NHWC", []int{13, 9, 3}, 30},
		{"NCT", []int{4, 29}, 7},
		{"NTC", []int{29, 4}, 7},
		{"NTC", []int{1 + 49, 4}, 20}, // a class token, which has no position, and 7 x 7 others
	} {
		z := smooth(1, 1, 1, 1, tensor.Size(c.shape)) // random values; the shape does not matter
		p, why := featureMapsOf(tensor.Layer{Shape: c.shape, Axes: c.axes}, c.limit)
		if why != "" || !p.isPooled() {
			t.Fatalf("%s %v: %q, %v", c.axes, c.shape, why, p.pooled)
		}
		// h x w positions (rows and columns of a map, or tokens) are pooled to m x n.
		h, w, m, n := 1, p.grid[0], 1, p.pooled[0]
		if len(p.grid) == 2 {
			h, w, m, n = p.grid[0], p.grid[1], p.pooled[0], p.pooled[1]
		}
		const gap = 5 // unused values between the rows of got
		got := make([]float32, p.channels*(m*n+gap))
		p.rows(got, m*n+gap, z.Data)
		for channel := range p.channels {
			for i := range m * n {
				var sum, count float64
				for y := i / n * h / m; y < ((i/n+1)*h+m-1)/m; y++ {
					for x := i % n * w / n; x < ((i%n+1)*w+n-1)/n; x++ {
						sum += float64(z.Data[p.base+channel*p.channelStep+(y*w+x)*p.positionStep])
						count++
					}
				}
				near(t, fmt.Sprintf("%s %v, position %d of channel %d", c.axes, c.shape, i, channel), float64(got[channel*(m*n+gap)+i]), sum/count, 1e-5)
			}
		}
	}
}

// BenchmarkPool pools the widest maps of a SqueezeNet, 55 x 55 of 128 channels, to at most 256
// positions.
func BenchmarkPool(b *testing.B) {
	z := smooth(1, 1, 128, 55, 55)
	p, _ := featureMapsOf(tensor.Layer{Shape: z.Shape[1:], Axes: "NCHW"}, 256)
	dst := make([]float32, 128*p.positions())
	for b.Loop() {
		p.rows(dst, p.positions(), z.Data)
	}
}
