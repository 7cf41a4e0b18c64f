package latent

import (
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// TestBorrowed checks that the buffers of an accumulator take no more memory than Borrowed returns,
// the bound on what it takes from a pool that accumulators share (see measure.Borrower), when a
// sample is added to a block of observations that is almost full. An observation is the vector of
// channels at one position, for an input and for the transformed one.
func TestBorrowed(t *testing.T) {
	t.Parallel()
	m, err := New(Settings{Ridge: 1e-3, Folds: 5})
	if err != nil {
		t.Fatal(err)
	}
	const channels, side = 512, 45 // 2,025 positions, a little fewer than blockRows, at which a block is full
	site := measure.Site{
		Layer:  tensor.Layer{Name: "maps", Shape: []int{channels, side, side}, Axes: "NCHW"},
		Layout: measure.NewLayout(100),
		Motion: transform.Motions(transform.Rotate{Angle: transform.Fixed(90)}),
	}
	acc, err := m.New(site)
	if err != nil {
		t.Fatal(err)
	}
	a, z := acc.(*accumulator), make([]float32, channels*side*side)
	for range 2 {
		a.addSample(z, z, site.Motion(nil))
	}
	if a.block.n != 2*side*side {
		t.Fatalf("the block has %d observations, want those of two samples", a.block.n)
	}
	used := 4 * int64(cap(a.block.same)+cap(a.block.moved)+cap(a.acted))
	if bound := m.(measure.Borrower).Borrowed(site); used > bound {
		t.Errorf("the observations take %d bytes, and Borrowed bounds them by %d", used, bound)
	}
}
