package linalg

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// BackendEnv names the variable that overrides the search for a library: the path of one, or "none".
const BackendEnv = "NOETHER_BLAS"

// A Backend says what computes matrix products and decompositions.
type Backend struct {
	Name    string // "OpenBLAS", "MKL", "Accelerate" or "gonum"
	Path    string // of the library as it was opened; empty for gonum
	Version string // as the library gives it; may be empty
	Threads int    // that the library uses; 1 for gonum, 0 where the library does not tell
	Hint    string // the command that installs a fast library; empty where there is one
	Problem string // why a library that was found is not used; usually empty

	setThreads func(n int32)
}

// Accelerate puts the first library that it finds behind gonum's blas32, blas64 and lapack64, for the whole process,
// and says which. It is to be called once, before anything computes. It looks at the path in $NOETHER_BLAS first,
// then for Accelerate (on macOS), OpenBLAS and MKL where they usually are. With none, gonum's own code stays and
// Backend.Hint says what to install. A library is used only if it solves a small problem correctly.
func Accelerate() Backend {
	named := os.Getenv(BackendEnv)
	if named == "none" {
		return Backend{Name: "gonum", Threads: 1}
	}
	places := candidates()
	if named != "" {
		places = []string{named}
	}
	var problem string
	for _, path := range places {
		lib, err := open(path)
		if err == nil {
			use(lib)
			return lib.backend(path)
		}
		var found *unusable
		if named != "" || errors.As(err, &found) {
			problem = err.Error()
		}
	}
	return Backend{Name: "gonum", Threads: 1, Hint: hint(), Problem: problem}
}

// SetThreads sets the number of threads of the library. gonum and Accelerate choose theirs themselves.
func (b *Backend) SetThreads(n int) {
	if n < 1 || b.setThreads == nil {
		return
	}
	b.setThreads(int32(n))
	b.Threads = n
}

// String is one line for people.
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

// use registers a library with gonum.
func use(lib *library) {
	b := fastBLAS{lib: lib}
	blas64.Use(b)
	blas32.Use(b)
	lapack64.Use(fastLAPACK{lib: lib})
	lapack32, leadingEigen = fastLAPACK{lib: lib}, fastLAPACK{lib: lib}.leading
}

// candidates are the names to try, best first. A bare name is left to the system's loader.
func candidates() []string {
	openblas := []string{"libopenblas.so.0", "libopenblas.so", "libopenblasp.so.0"}
	mkl := []string{"libmkl_rt.so.2", "libmkl_rt.so", "/opt/intel/oneapi/mkl/latest/lib/libmkl_rt.so.2", "/opt/intel/oneapi/mkl/latest/lib/intel64/libmkl_rt.so.2"}
	switch runtime.GOOS {
	case "darwin":
		return []string{
			"/System/Library/Frameworks/Accelerate.framework/Accelerate",
			"/opt/homebrew/opt/openblas/lib/libopenblas.dylib", "/usr/local/opt/openblas/lib/libopenblas.dylib", "libopenblas.dylib",
		}
	case "windows":
		return []string{"libopenblas.dll", "openblas.dll", "mkl_rt.2.dll", "mkl_rt.dll"}
	}
	for _, dir := range []string{"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"} {
		for _, pattern := range []string{"openblas-pthread/libopenblas.so.0", "openblas-*/libopenblas.so.0"} {
			found, _ := filepath.Glob(filepath.Join(dir, pattern))
			openblas = append(openblas, found...)
		}
	}
	return append(openblas, mkl...)
}

// hint is the command that installs a library on this system.
func hint() string {
	switch runtime.GOOS {
	case "darwin":
		return "brew install openblas"
	case "windows":
		return "conda install -c conda-forge openblas"
	}
	for _, known := range []struct{ mark, command string }{
		{"/etc/debian_version", "apt-get install libopenblas0-pthread"},
		{"/etc/fedora-release", "dnf install openblas-threads"},
		{"/etc/redhat-release", "dnf install openblas-threads"},
		{"/etc/arch-release", "pacman -S openblas"},
		{"/etc/alpine-release", "apk add openblas"},
	} {
		if _, err := os.Stat(known.mark); err == nil {
			return known.command
		}
	}
	return "install OpenBLAS with the system's package manager"
}
