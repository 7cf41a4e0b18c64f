package plan

import (
	"testing"

	"github.com/noether-ml/noether/study/spec"
)

func TestShareMemory(t *testing.T) {
	t.Parallel()
	s := &spec.Study{Memory: spec.DefaultMemory}
	wide, narrow := DivideMemory(s, &Options{}), DivideMemory(s, &Options{Memory: 64 << 20})
	if wide.Accumulators != spec.DefaultMemory || wide.activations != activationMemory || wide.images != imageMemory {
		t.Errorf("without a limit the shares are %+v, want the defaults", wide)
	}
	if narrow.Accumulators != 8<<20 || narrow.activations != minBuffer || narrow.images != minBuffer {
		t.Errorf("with 64 MiB the shares are %+v, want 8 MiB for accumulators and the least for buffers", narrow)
	}
	if MemoryWarning(s, 64<<20) == "" || MemoryWarning(s, 4<<30) != "" || MemoryWarning(s, 0) != "" {
		t.Error("MemoryWarning returns a wrong result")
	}
}

func TestMemoryWithoutBound(t *testing.T) {
	t.Parallel()
	free := &Options{Free: 16 << 30}
	unbounded, bounded := &spec.Study{Memory: spec.DefaultMemory}, &spec.Study{}
	bounded.SetMemory(spec.DefaultMemory)
	for _, c := range []struct {
		study *spec.Study
		o     *Options
		want  int64
	}{
		{unbounded, free, 4 << 30},
		{bounded, free, spec.DefaultMemory},
		{unbounded, &Options{}, spec.DefaultMemory},
		{unbounded, &Options{Free: 100 << 20}, spec.DefaultMemory},
		{unbounded, &Options{Free: 16 << 30, Memory: 64 << 20}, 8 << 20},
	} {
		if got := DivideMemory(c.study, c.o).Accumulators; got != c.want {
			t.Errorf("free %d, limit %d: %d bytes, want %d", c.o.Free, c.o.Memory, got, c.want)
		}
	}
}
