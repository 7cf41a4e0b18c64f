package firing_test

import (
	"fmt"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/procedure/firing"
	"github.com/noether-ml/noether/tensor"
)

// This example scores a unit that responds to gratings (sinusoidal stripes) of one frequency and
// one orientation, at each of 21 phases. Inputs are the gratings themselves, Images also the
// further phases on trajectories. A trajectory has all phases of one frequency and orientation. A
// unit fires where its response reaches a threshold. The global firing rate G is the fraction of
// the inputs at which it fires, the local firing rate L that of the trajectory of the input that
// activates it most, and S = L / G.
func ExampleScoreUnits() {
	gratings, _ := dataset.OpenGratings(dataset.GratingsOptions{})
	trajectories := gratings.AlongPhase()
	responses := tensor.New(trajectories.Len(), 1) // gratings x units
	for i := range trajectories.Len() {
		if g := trajectories.Grating(i); g.Frequency == 4 && g.Orientation == 45 {
			responses.Data[i] = 1
		}
	}
	settings := firing.Defaults()
	settings.References = 1
	units, _ := firing.ScoreUnits(firing.Responses{Inputs: responses.Slice(0, gratings.Len()), Images: responses, Steps: trajectories.Trajectory}, settings)
	fmt.Printf("G = %.4f, L = %.2f, S = %.1f\n", units[0].Global, units[0].Local, units[0].Score)
	// Output: G = 0.0119, L = 1.00, S = 84.0
}

func ExampleThreshold() {
	responses := []float32{0, 3, 1, 2, 3, 0, 1, 2, 0, 0}
	q, global := firing.Threshold(responses, 0.1)
	fmt.Println(q, global) // the largest value occurs twice: ties count
	// Output: 3 0.2
}
