package blas

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/lapack"

	"github.com/noether-ml/noether/internal/dynlib"
)

// A library holds the Fortran functions of a BLAS and LAPACK library, with the names and arguments
// of their documentation (netlib.org/lapack). OpenBLAS, MKL and Apple's Accelerate all export
// these, while some builds lack the C interfaces. Matrices are column-major, arguments are
// pointers, and integers have 32 bits. The last arguments of a function, l1 and so on, are the
// lengths of its character arguments, which gfortran expects.
type library struct {
	dgemm  func(ta, tb *byte, m, n, k *int32, alpha, a *float64, lda *int32, b *float64, ldb *int32, beta, c *float64, ldc *int32, l1, l2 int)
	sgemm  func(ta, tb *byte, m, n, k *int32, alpha, a *float32, lda *int32, b *float32, ldb *int32, beta, c *float32, ldc *int32, l1, l2 int)
	dsyrk  func(uplo, t *byte, n, k *int32, alpha, a *float64, lda *int32, beta, c *float64, ldc *int32, l1, l2 int)
	ssyrk  func(uplo, t *byte, n, k *int32, alpha, a *float32, lda *int32, beta, c *float32, ldc *int32, l1, l2 int)
	dtrsm  trsmFunc[float64]
	strsm  trsmFunc[float32]
	dpotrf func(uplo *byte, n *int32, a *float64, lda, info *int32, l1 int)
	spotrf func(uplo *byte, n *int32, a *float32, lda, info *int32, l1 int)
	dsyevd func(jobz, uplo *byte, n *int32, a *float64, lda *int32, w, work *float64, lwork, iwork, liwork, info *int32, l1, l2 int)
	ssyevd func(jobz, uplo *byte, n *int32, a *float32, lda *int32, w, work *float32, lwork, iwork, liwork, info *int32, l1, l2 int)
	dsytrd func(uplo *byte, n *int32, a *float64, lda *int32, d, e, tau, work *float64, lwork, info *int32, l1 int)
	dstedc func(compz *byte, n *int32, d, e, z *float64, ldz *int32, work *float64, lwork, iwork, liwork, info *int32, l1 int)
	dormqr func(side, t *byte, m, n, k *int32, a *float64, lda *int32, tau, c *float64, ldc *int32, work *float64, lwork, info *int32, l1, l2 int)
	dgesdd func(jobz *byte, m, n *int32, a *float64, lda *int32, s, u *float64, ldu *int32, vt *float64, ldvt *int32, work *float64, lwork, iwork, info *int32, l1 int)

	name, version string
	getThreads    func() int32  // nil if the library has no such function, or identify does not know it
	setThreads    func(n int32) // the same
}

type trsmFunc[T any] func(side, uplo, ta, diag *byte, m, n *int32, alpha, a *T, lda *int32, b *T, ldb *int32, l1, l2, l3, l4 int)

type unusableError struct{ path, reason string }

func (e *unusableError) Error() string { return fmt.Sprintf("%s is not used: %s", e.path, e.reason) }

// open loads a library and checks that it can be used. If it was found but cannot be used, the
// error is an unusableError.
func open(path string) (*library, error) {
	// OpenBLAS would choose slow kernels for a processor that it does not know.
	if err := chooseKernels(); err != nil {
		return nil, err
	}
	loaded, err := dynlib.Open(path)
	if err != nil {
		return nil, err
	}
	lib := &library{}
	lib.identify(loaded)
	if strings.Contains(lib.version, "USE64BITINT") {
		return nil, &unusableError{path, "it is built for 64-bit integers"}
	}
	for name, f := range map[string]any{
		"dgemm_": &lib.dgemm, "sgemm_": &lib.sgemm, "dsyrk_": &lib.dsyrk, "ssyrk_": &lib.ssyrk, "dtrsm_": &lib.dtrsm, "strsm_": &lib.strsm,
		"dpotrf_": &lib.dpotrf, "spotrf_": &lib.spotrf, "dsyevd_": &lib.dsyevd, "ssyevd_": &lib.ssyevd, "dgesdd_": &lib.dgesdd,
		"dsytrd_": &lib.dsytrd, "dstedc_": &lib.dstedc, "dormqr_": &lib.dormqr,
	} {
		if loaded.Bind(f, name) != nil && loaded.Bind(f, prefix+name) != nil {
			return nil, &unusableError{path, "it lacks " + name}
		}
	}
	if !lib.works() {
		return nil, &unusableError{path, "its results for a 2 x 2 problem are wrong"}
	}
	return lib, nil
}

// identify sets the name and version of the library. It recognises a library by a function that the
// others lack.
func (l *library) identify(loaded dynlib.Library) {
	bind := func(f any, name string) bool {
		return loaded.Bind(f, name) == nil || loaded.Bind(f, prefix+name) == nil
	}
	var config func() string
	var layer func(int32) int32
	switch {
	case bind(&config, "openblas_get_config"):
		l.name, l.version = "OpenBLAS", strings.TrimPrefix(strings.TrimSpace(config()), "OpenBLAS ")
		bind(&l.getThreads, "openblas_get_num_threads")
		bind(&l.setThreads, "openblas_set_num_threads")
	case bind(&layer, "MKL_Set_Interface_Layer"):
		l.name = "MKL"
		const lp64 = 0 // 32-bit integers, also if the environment asks for 64-bit ones
		layer(lp64)
		bind(&l.getThreads, "MKL_Get_Max_Threads")
		bind(&l.setThreads, "MKL_Set_Num_Threads")
	case bind(&layer, "BLASSetThreading"):
		l.name = "Accelerate"
	default:
		l.name = "BLAS"
	}
}

func (l *library) backend(path string) Backend {
	b := Backend{Name: l.name, Path: path, Version: l.version, setThreads: l.setThreads}
	if l.getThreads != nil {
		b.Threads = int(l.getThreads())
	}
	return b
}

// works reports whether the library computes a known product and known eigenvalues correctly, which
// it does not if it has another calling convention.
func (l *library) works() bool {
	c := make([]float64, 4)
	fastBLAS{lib: l}.Dgemm(blas.NoTrans, blas.Trans, 2, 2, 2, 1, []float64{1, 2, 3, 4}, 2, []float64{5, 6, 7, 8}, 2, 0, c, 2)
	a, w := []float64{2, 1, 1, 2}, make([]float64, 2) // the eigenvalues are 1 and 3
	ok := fastLAPACK{lib: l}.Dsyev(lapack.EVCompute, blas.Upper, 2, a, 2, w, make([]float64, 64), 64)
	return ok && c[0] == 17 && c[1] == 23 && c[2] == 39 && c[3] == 53 && math.Abs(w[0]-1) < 1e-12 && math.Abs(w[1]-3) < 1e-12
}
