package seis_test

import (
	"fmt"
	"log"
	"math"
	"math/rand/v2"

	"github.com/noether-ml/noether/measure/seis"
	"github.com/noether-ml/noether/tensor"
)

// SEIS (Subspace-based Equivariance and Invariance Scores) compares the activations z of a layer on
// images with zt on the mirrored images. The feature maps of this layer are mirrored if the image
// is mirrored. All information is preserved (equivariance 1), but no longer at the same positions
// (invariance well below 1). Equivariance is the mean of the canonical correlations between z and
// zt, and invariance weights each by how similar its two spatial patterns are. The mirrored maps
// are exact, so all correlations are 1: these patterns are then not unique, hence the warning.
func ExampleCompare() {
	const b, c, side = 100, 4, 6
	g := rand.New(rand.NewPCG(1, 1))
	z, zt := tensor.New(b, c, side, side), tensor.New(b, c, side, side)
	for m := range b * c {
		fy, fx, phase := g.NormFloat64(), g.NormFloat64(), g.Float64()*2*math.Pi
		for y := range side {
			for x := range side {
				v := float32(math.Cos(fy*float64(y)+fx*float64(x)+phase) + 0.3*g.NormFloat64())
				z.Data[(m*side+y)*side+x] = v
				zt.Data[(m*side+y)*side+side-1-x] = v
			}
		}
	}
	scores, err := seis.Compare(z, zt, seis.Defaults())
	if err != nil {
		log.Fatal(err)
	}
	equivariance, invariance := scores[0], scores[1]
	fmt.Printf("%s %.2f\n", equivariance.Statistic, equivariance.Value)
	fmt.Printf("%s below a half: %v (%s)\n", invariance.Statistic, invariance.Value < 0.5, invariance.Warnings[0])
	// Output:
	// equivariance 1.00
	// invariance below a half: true (canonical correlations tie: invariance depends on the solver)
}
