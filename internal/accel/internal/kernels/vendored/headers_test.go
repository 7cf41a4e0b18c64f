package vendored_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The C headers of ONNX Runtime in this folder are copies of those in the module of its Go binding.
func TestHeaders(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/yalue/onnxruntime_go").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"onnxruntime_c_api.h", "onnxruntime_ep_c_api.h"} {
		want, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from that of the module: run go generate", name)
		}
	}
}
