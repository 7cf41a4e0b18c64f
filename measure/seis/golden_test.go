package seis

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/tensor"
)

// A golden is a case of testdata/golden.json with its expected scores, which golden.py computed.
// Variance and Positions are as in Settings.
type golden struct {
	Name                           string
	Axes                           tensor.Axes
	Shape                          []int
	Variance                       float64
	Positions                      int
	Offset                         []float32 // added to Z and to Zt
	Z, Zt                          []byte    // activations on x and on T(x); see unpack
	Equivariance, Invariance, Rank float64
}

// goldens reads testdata/golden.json.
func goldens(t testing.TB) []golden {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var out []golden
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// unpack returns activations: those of golden.json are signed bytes that count sixteenths, and the
// offset is added.
func unpack(sixteenths []byte, offset float32, shape []int) tensor.Tensor {
	z := tensor.New(shape...)
	for i, b := range sixteenths {
		z.Data[i] = float32(int8(b))/16 + offset
	}
	return z
}

// TestAgreesWithSingularValueDecompositions compares scores, which are computed from second
// moments, with those of golden.py, which decomposes the matrices of activations themselves. In the
// case cifar the activations are those of images; in the others they are in golden.json.
func TestAgreesWithSingularValueDecompositions(t *testing.T) {
	t.Parallel()
	for _, g := range goldens(t) {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			var z, zt tensor.Tensor
			if g.Name == "cifar" {
				z, zt = images(t, g.Shape[0])
			} else {
				z, zt = unpack(g.Z, g.Offset[0], g.Shape), unpack(g.Zt, g.Offset[1], g.Shape)
			}
			got := scoresOf(t, Settings{Variance: g.Variance, Positions: g.Positions}, siteOf(g.Axes, z), z, zt)
			near(t, "equivariance", got["equivariance"].Value, g.Equivariance, 1e-6)
			near(t, "invariance", got["invariance"].Value, g.Invariance, 1e-6)
			near(t, "rank", got["rank"].Value, g.Rank, 0)
		})
	}
}

// images returns a layer of four channels on n CIFAR-10 images, and on the same images averaged
// over 2 x 2 pixels, which moves them by half a pixel. golden.py computes the same.
func images(t testing.TB, n int) (z, zt tensor.Tensor) {
	t.Helper()
	data, err := os.ReadFile(testdata.Path(t, "cifar10", "test_batch.bin"))
	if err != nil {
		t.Fatal(err)
	}
	const side, area, record = 32, 32 * 32, 1 + 3*32*32 // a record is a label and an image
	z, zt = tensor.New(n, 4, side, side), tensor.New(n, 4, side, side)
	for i := range n {
		x, y := make([]float32, 3*area), make([]float32, 3*area)
		for j, b := range data[i*record+1 : (i+1)*record] {
			x[j] = float32(b) / 255
		}
		for j := range y {
			if row, col := j%area/side, j%side; row < side-1 && col < side-1 {
				y[j] = (x[j] + x[j+1] + x[j+side] + x[j+side+1]) / 4
			}
		}
		edges(z.At(i).Data, x)
		edges(zt.At(i).Data, y)
	}
	return z, zt
}

// edges fills the four channels of an image x: red, edges of red along rows, edges of green along
// columns, blue.
func edges(dst, x []float32) {
	const side, area = 32, 32 * 32
	copy(dst, x[:area])
	copy(dst[3*area:], x[2*area:])
	for j := range area {
		if j%side < side-1 {
			dst[area+j] = max(x[j+1]-x[j], 0)
		}
		if j/side < side-1 {
			dst[2*area+j] = max(x[area+j+side]-x[area+j], 0)
		}
	}
}
