// Package blas makes gonum and package linalg use OpenBLAS, MKL or Apple's Accelerate, if one is
// installed. A 1024 x 1024 symmetric eigenproblem then takes 0.14 s instead of 11 s. The library is
// loaded at run time:
//
//	backend := blas.Load()
//	fmt.Println(backend) // such as "OpenBLAS (libopenblas.so.0, 4 threads)"
package blas

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/release"
)

// backendEnv is the environment variable that overrides the search for a library. Its value is the
// path of a library, or "none".
const backendEnv = "NOETHER_BLAS"

// A Backend describes the library that computes matrix products and decompositions.
type Backend struct {
	Name    string // "OpenBLAS", "MKL", "Accelerate", "gonum", or "BLAS" for an unknown library
	Path    string // of the library; empty for gonum
	Version string // of the library; empty if unknown
	Threads int    // number of threads of the library; 1 for gonum, 0 if unknown
	Hint    string // how to install a fast library; empty if one is in use or none is wanted
	// Problem says why a library that was found, or named in $NOETHER_BLAS, cannot be used. It is
	// usually empty.
	Problem string

	setThreads func(n int32) // nil if the library has no such function
}

// Load loads a fast BLAS and LAPACK library, makes gonum's blas32, blas64 and lapack64 use
// it, and returns a description of it. Call it once, before any computation.
//
// If $NOETHER_BLAS is a path, only that library is tried; if it is "none", no library. Else
// Load tries Apple's Accelerate (on macOS only), OpenBLAS, and MKL (not on macOS) in their
// usual folders, in this order, and before them OpenBLAS of the Python package scipy-openblas32. A library is used only if it solves a small problem correctly. If
// there is none, gonum's own code is used, and Backend.Hint says what to install.
func Load() Backend {
	named := os.Getenv(backendEnv) // "": search
	if named == "none" {
		return Backend{Name: "gonum", Threads: 1}
	}
	paths := candidates()
	if named != "" {
		paths = []string{named}
	}
	var problem string
	for _, path := range paths {
		lib, err := open(path)
		if err == nil {
			register(lib)
			return lib.backend(path)
		}
		var unusable *unusableError
		if named != "" || errors.As(err, &unusable) {
			problem = err.Error()
		}
	}
	return Backend{Name: "gonum", Threads: 1, Hint: hint(), Problem: problem}
}

// SetThreads sets the number of threads of the library. It has no effect on gonum, Apple's
// Accelerate and unknown libraries.
func (b *Backend) SetThreads(n int) {
	if n < 1 || b.setThreads == nil {
		return
	}
	b.setThreads(int32(n))
	b.Threads = n
}

// String returns the name, the path and the number of threads of the library.
func (b Backend) String() string {
	if b.Path == "" {
		return b.Name + " (pure Go)"
	}
	s := fmt.Sprintf("%s (%s", b.Name, b.Path)
	if b.Threads > 0 {
		s += fmt.Sprintf(", %d threads", b.Threads)
	}
	return s + ")"
}

func register(lib *library) {
	b := fastBLAS{lib: lib}
	blas64.Use(b)
	blas32.Use(b)
	lapack64.Use(fastLAPACK{lib: lib})
	linalg.Use(fastLAPACK{lib: lib})
}

// candidates returns the paths to try, best first. A name without a folder is looked up by the
// dynamic loader.
func candidates() []string {
	openblas := []string{"libopenblas.so.0", "libopenblas.so", "libopenblasp.so.0"}
	packaged := ofPython()
	mkl := []string{"libmkl_rt.so.2", "libmkl_rt.so", "/opt/intel/oneapi/mkl/latest/lib/libmkl_rt.so.2", "/opt/intel/oneapi/mkl/latest/lib/intel64/libmkl_rt.so.2"}
	switch runtime.GOOS {
	case "darwin":
		return []string{
			"/System/Library/Frameworks/Accelerate.framework/Accelerate",
			"/opt/homebrew/opt/openblas/lib/libopenblas.dylib", "/usr/local/opt/openblas/lib/libopenblas.dylib", "libopenblas.dylib",
		}
	case "windows":
		return append(packaged, "libopenblas.dll", "openblas.dll", "mkl_rt.2.dll", "mkl_rt.dll")
	}
	for _, dir := range []string{"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"} {
		for _, pattern := range []string{"openblas-pthread/libopenblas.so.0", "openblas-*/libopenblas.so.0"} {
			found, _ := filepath.Glob(filepath.Join(dir, pattern))
			openblas = append(openblas, found...)
		}
	}
	return slices.Concat(packaged, openblas, mkl)
}

// packageName is the Python package that carries OpenBLAS with 32-bit integers, and prefix that of
// its functions' names. The wheel depends on it.
const (
	packageName = "scipy_openblas32"
	prefix      = "scipy_"
)

// ofPython returns the path of the library of that package, in the environment of the program and
// in the active one.
func ofPython() []string {
	program := machine.Program()
	if program == "" {
		return nil
	}
	var found []string
	for _, folder := range machine.PythonPackages(program) {
		for _, name := range []string{"libscipy_openblas.so", "libscipy_openblas.dll"} {
			if path := filepath.Join(folder, packageName, "lib", name); exists(path) {
				found = append(found, path)
			}
		}
	}
	return found
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// hint returns how to install a fast library. In a Python environment that is a package of Python.
func hint() string {
	if filepath.Base(filepath.Dir(filepath.Dir(machine.Program()))) == release.Import {
		return "pip install " + strings.ReplaceAll(packageName, "_", "-")
	}
	return machine.HowToInstall(machine.Packages{Library: "OpenBLAS", Debian: "libopenblas0-pthread", Fedora: "openblas-threads", Arch: "openblas",
		Alpine: "openblas", Homebrew: "openblas", Conda: "openblas"})
}
