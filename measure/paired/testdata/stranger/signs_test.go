package stranger

import (
	"math/rand/v2"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/measuretest"
	"github.com/noether-ml/noether/tensor"
)

func TestScore(t *testing.T) {
	acc, err := SignAgreement().New(measure.Site{Layer: tensor.Layer{Shape: []int{4}, Axes: "NC"}, Layout: measure.NewLayout(2)})
	if err != nil {
		t.Fatal(err)
	}
	err = acc.Update(&measure.Batch{
		Place: []int{0, 1}, Index: []int{0, 1}, Label: []int{measure.NoLabel, measure.NoLabel},
		Clean:       tensor.Tensor{Shape: []int{2, 4}, Data: []float32{1, 2, 3, 4, -1, 1, -1, 1}},
		Transformed: tensor.Tensor{Shape: []int{2, 4}, Data: []float32{1, 2, 3, 4, 1, 1, 1, 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	scores, err := acc.Scores()
	if err != nil || len(scores) != 1 || scores[0].Value != 0.75 || scores[0].Null != 0.75 {
		t.Fatalf("scores %+v, error %v; want 0.75 with the null 0.75", scores, err)
	}
}

func TestContract(t *testing.T) {
	const n = 70
	r := rand.New(rand.NewPCG(1, 1))
	random := func() tensor.Tensor {
		z := tensor.New(n, 5)
		for i := range z.Data {
			z.Data[i] = float32(r.NormFloat64())
		}
		return z
	}
	measuretest.Run(t, measuretest.Case{
		Measure: SignAgreement(), Site: measure.Site{Layer: tensor.Layer{Shape: []int{5}, Axes: "NC"}, Layout: measure.NewLayout(n), KeepSamples: true},
		Clean: random(), Transformed: random(),
	})
}
