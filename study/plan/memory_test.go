package plan

import (
	"testing"

	"github.com/noether-ml/noether/study/spec"
)

func TestMemoryIsSharedOut(t *testing.T) {
	t.Parallel()
	s := &spec.Study{Memory: spec.DefaultMemory}
	wide, narrow := ShareMemory(s, 0), ShareMemory(s, 64<<20)
	if wide.Accumulators != spec.DefaultMemory || wide.activations != activationMemory || wide.images != imageMemory {
		t.Errorf("without a limit the room is %+v", wide)
	}
	if narrow.Accumulators != 8<<20 || narrow.activations != minBuffer || narrow.images != minBuffer {
		t.Errorf("with 64 MiB the room is %+v", narrow)
	}
	if MemoryWarning(s, 64<<20) == "" || MemoryWarning(s, 4<<30) != "" || MemoryWarning(s, 0) != "" {
		t.Error("the warning comes at the wrong time")
	}
}
