//go:build unix

package supervise

import (
	"slices"
	"testing"
)

// TestNotes checks that a parent reads the models that its child worked on, also after a shorter
// list has replaced a longer one.
func TestNotes(t *testing.T) {
	t.Parallel()
	notes, err := newNotes()
	if err != nil {
		t.Fatal(err)
	}
	defer notes.Close()
	if working, err := readNotes(notes); err != nil || len(working) > 0 {
		t.Errorf("before the first note: %q, %v", working, err)
	}
	w := &Worker{notes: notes, crashed: map[string]string{"bad.onnx": "SIGFPE"}}
	leave := w.Enter("a rather long name\x1b[31m.onnx")
	w.Enter("good.onnx")
	w.Enter("good.onnx")()
	leave()
	if working, err := readNotes(notes); err != nil || !slices.Equal(working, []string{"good.onnx"}) {
		t.Errorf("the child works on %q, %v", working, err)
	}
	if w.Crashed("good.onnx") != nil || w.Crashed("bad.onnx") == nil {
		t.Error("the wrong model has crashed")
	}
	var none *Worker
	none.Enter("good.onnx")()
	if none.Crashed("good.onnx") != nil {
		t.Error("a model has crashed a process that is not supervised")
	}
}

// TestReportOfCrash checks what is taken for a crash of the engine, and what is passed on.
func TestReportOfCrash(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"SIGFPE: floating-point exception\nPC=0x7f": "SIGFPE: floating-point exception",
		"fatal error: unexpected signal\n[signal":   "fatal error: unexpected signal",
		"terminate called after throwing\n":         "terminate called after throwing",
		"panic: runtime error: index\n":             "", // the program's own
		"SIGQUIT: quit\nPC=0x7f":                    "", // asked for
		"":                                          "",
	} {
		r := &report{}
		if _, err := r.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, crash := r.cause(); crash != (want != "") || crash && got != want {
			t.Errorf("%q: cause %q, %v, want %q", text, got, crash, want)
		}
	}
}

// BenchmarkEnter measures what a run of the engine costs beyond the run itself.
func BenchmarkEnter(b *testing.B) {
	notes, err := newNotes()
	if err != nil {
		b.Fatal(err)
	}
	defer notes.Close()
	w := &Worker{notes: notes}
	for b.Loop() {
		w.Enter("models/resnet18.onnx")()
	}
}
