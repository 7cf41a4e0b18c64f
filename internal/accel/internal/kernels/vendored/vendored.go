// Package vendored holds the headers of ONNX Runtime's C API. cgo finds them there in a clone, in
// the module cache and, since the package is imported, in a folder that go mod vendor makes.
package vendored

//go:generate sh -c "install -m 644 $(go list -m -f {{.Dir}} github.com/yalue/onnxruntime_go)/onnxruntime_*api.h ."
