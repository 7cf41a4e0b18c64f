//go:build ignore

// Copyheaders copies the headers of ONNX Runtime's C API, with that of its execution providers
// (ep), from the module of its Go binding to the current folder. go generate runs it.
package main

import (
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/yalue/onnxruntime_go").Output()
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"onnxruntime_c_api.h", "onnxruntime_ep_c_api.h"} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), name))
		if err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(name, text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
