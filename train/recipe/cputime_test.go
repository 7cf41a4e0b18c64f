package recipe

import (
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/machine"
)

// TestProcessorTimeOfOneTraining checks that the processor time of a training of a series does not
// include that of the trainings before it.
func TestProcessorTimeOfOneTraining(t *testing.T) {
	d, err := openFolder(t.TempDir(), &File{}, "identity")
	if err != nil {
		t.Fatal(err)
	}
	if got := machine.CPUTime() - d.opened; got < 0 || got > 500*time.Millisecond {
		t.Errorf("%v of processor time since the folder was opened, want less than 0.5 s", got)
	}
	d.opened -= 3 * time.Second // as if the training had used them
	if got := d.cpuSeconds(); got != 3 {
		t.Errorf("the training took %v s of processor time, want 3", got)
	}
}
