package recipe

import (
	"math"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/machine"
)

// TestProcessorTimeOfOneTraining checks that the processor time of a training run does not include
// that of earlier runs in the same process.
func TestProcessorTimeOfOneTraining(t *testing.T) {
	before := machine.CPUTime()
	// The output folder of a training, which notes the processor time so far; "identity" stands for
	// the hash of the training's settings.
	d, err := openFolder(t.TempDir(), &File{}, "identity")
	if err != nil {
		t.Fatal(err)
	}
	if after := machine.CPUTime(); d.opened < before || d.opened > after {
		t.Errorf("the folder was opened at %v of processor time, want %v to %v", d.opened, before, after)
	}
	d.opened -= time.Hour // as if the run had used an hour
	low := math.Round((machine.CPUTime() - d.opened).Seconds())
	got := d.cpuSeconds()
	if high := math.Round((machine.CPUTime() - d.opened).Seconds()); got < low || got > high {
		t.Errorf("the run took %v s of processor time, want %v to %v", got, low, high)
	}
}
