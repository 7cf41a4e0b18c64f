package blas

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
	"gonum.org/v1/gonum/lapack"
	lapackgonum "gonum.org/v1/gonum/lapack/gonum"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/linalg"
)

// fastLibrary returns the native BLAS and LAPACK library of this machine (OpenBLAS, MKL or
// Accelerate) without making gonum use it. It skips the test if there is none.
func fastLibrary(t testing.TB) *library {
	t.Helper()
	for _, path := range candidates() {
		if lib, err := open(path); err == nil {
			return lib
		}
	}
	t.Skip("no native BLAS on this machine")
	return nil
}

// randomMatrix returns a random rows x cols matrix and its stride, which may be larger than cols.
func randomMatrix(g *rand.Rand, rows, cols int) ([]float64, int) {
	stride := max(cols, 1) + g.IntN(3)
	a := make([]float64, rows*stride)
	for i := range a {
		a[i] = g.NormFloat64()
	}
	return a, stride
}

// checkEqual checks that elements differ by at most tolerance.
func checkEqual(t rapid.TB, what string, got, want []float64, tolerance float64) {
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tolerance) {
			t.Fatalf("%s[%d] = %v, want %v", what, i, got[i], want[i])
		}
	}
}

func clone(a []float64) []float64 { return append([]float64(nil), a...) }

func float32s(a []float64) []float32 {
	out := make([]float32, len(a))
	for i, v := range a {
		out[i] = float32(v)
	}
	return out
}

func float64s(a []float32) []float64 {
	out := make([]float64, len(a))
	for i, v := range a {
		out[i] = float64(v)
	}
	return out
}

var (
	transposes = rapid.SampledFrom([]blas.Transpose{blas.NoTrans, blas.Trans})
	triangles  = rapid.SampledFrom([]blas.Uplo{blas.Upper, blas.Lower})
	scalars    = rapid.SampledFrom([]float64{0, 1, -0.5})
	orders     = rapid.IntRange(0, 9)
)

func TestProductsAgreeWithGonum(t *testing.T) {
	t.Parallel()
	fast, slow := fastBLAS{lib: fastLibrary(t)}, gonum.Implementation{}
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		m, n, k := orders.Draw(t, "m"), orders.Draw(t, "n"), orders.Draw(t, "k")
		ta, tb := transposes.Draw(t, "ta"), transposes.Draw(t, "tb")
		ul := triangles.Draw(t, "uplo")
		alpha, beta := scalars.Draw(t, "alpha"), scalars.Draw(t, "beta")
		rows, cols := storedShape(ta, m, k)
		a, lda := randomMatrix(g, rows, cols)
		rows, cols = storedShape(tb, k, n)
		b, ldb := randomMatrix(g, rows, cols)
		c, ldc := randomMatrix(g, m, n)

		want, got := clone(c), clone(c)
		slow.Dgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, want, ldc)
		fast.Dgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, got, ldc)
		checkEqual(t, "Dgemm", got, want, 1e-12)
		got32 := float32s(c)
		fast.Sgemm(ta, tb, m, n, k, float32(alpha), float32s(a), lda, float32s(b), ldb, float32(beta), got32, ldc)
		checkEqual(t, "Sgemm", float64s(got32), want, 1e-4)

		s, lds := randomMatrix(g, m, m)
		want, got = clone(s), clone(s)
		slow.Dsyrk(ul, ta, m, k, alpha, a, lda, beta, want, lds)
		fast.Dsyrk(ul, ta, m, k, alpha, a, lda, beta, got, lds)
		checkEqual(t, "Dsyrk", got, want, 1e-12)
		got32 = float32s(s)
		fast.Ssyrk(ul, ta, m, k, float32(alpha), float32s(a), lda, float32(beta), got32, lds)
		checkEqual(t, "Ssyrk", float64s(got32), want, 1e-4)
	})
}

func TestSolvesAgreeWithGonum(t *testing.T) {
	t.Parallel()
	fast, slow := fastBLAS{lib: fastLibrary(t)}, gonum.Implementation{}
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		m, n := orders.Draw(t, "m"), orders.Draw(t, "n")
		side := rapid.SampledFrom([]blas.Side{blas.Left, blas.Right}).Draw(t, "side")
		diag := rapid.SampledFrom([]blas.Diag{blas.NonUnit, blas.Unit}).Draw(t, "diag")
		ul, ta := triangles.Draw(t, "uplo"), transposes.Draw(t, "trans")
		order := m
		if side == blas.Right {
			order = n
		}
		a, lda := randomMatrix(g, order, order)
		for i := range order {
			for j := range order {
				a[i*lda+j] *= 0.1 // well conditioned even with an implicit unit diagonal
			}
			a[i*lda+i] = 2
		}
		b, ldb := randomMatrix(g, m, n)
		want, got := clone(b), clone(b)
		slow.Dtrsm(side, ul, ta, diag, m, n, 0.5, a, lda, want, ldb)
		fast.Dtrsm(side, ul, ta, diag, m, n, 0.5, a, lda, got, ldb)
		checkEqual(t, "Dtrsm", got, want, 1e-11)
		got32 := float32s(b)
		fast.Strsm(side, ul, ta, diag, m, n, 0.5, float32s(a), lda, got32, ldb)
		checkEqual(t, "Strsm", float64s(got32), want, 1e-4)
	})
}

func TestCholeskyAgreesWithGonum(t *testing.T) {
	t.Parallel()
	fast, slow := fastLAPACK{lib: fastLibrary(t)}, lapackgonum.Implementation{}
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		n := orders.Draw(t, "n")
		ul := triangles.Draw(t, "uplo")
		a, lda := randomSymmetric(g, n)
		for i := range n {
			a[i*lda+i] += 20
		}
		want, got := clone(a), clone(a)
		slowOK, fastOK := slow.Dpotrf(ul, n, want, lda), fast.Dpotrf(ul, n, got, lda)
		if !slowOK || !fastOK {
			t.Fatalf("Dpotrf of a positive definite matrix = %v, and gonum's %v, want true", fastOK, slowOK)
		}
		checkEqual(t, "Dpotrf", got, want, 1e-11)
		if n > 0 {
			a[0] = -1
			if fast.Dpotrf(ul, n, a, lda) {
				t.Fatal("Dpotrf accepted an indefinite matrix")
			}
		}
	})
}

func randomSymmetric(g *rand.Rand, n int) ([]float64, int) {
	a, lda := randomMatrix(g, n, n)
	for i := range n {
		for j := range i {
			a[i*lda+j] = a[j*lda+i]
		}
	}
	return a, lda
}

func TestEigenvectorsReconstruct(t *testing.T) {
	t.Parallel()
	fast, slow := fastLAPACK{lib: fastLibrary(t)}, lapackgonum.Implementation{}
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		n := rapid.IntRange(1, 40).Draw(t, "n")
		ul := triangles.Draw(t, "uplo")
		a, lda := randomSymmetric(g, n)
		v, w := clone(a), make([]float64, n)
		workspace := make([]float64, 1)
		fast.Dsyev(lapack.EVCompute, ul, n, v, lda, w, workspace, -1) // -1: only returns the size
		size := int(workspace[0])
		if !fast.Dsyev(lapack.EVCompute, ul, n, v, lda, w, make([]float64, size), size) {
			t.Fatal("does not converge")
		}
		for i := range n {
			for j := range n {
				var sum float64
				for k := range n {
					sum += v[i*lda+k] * w[k] * v[j*lda+k]
				}
				if math.Abs(sum-a[i*lda+j]) > 1e-11 {
					t.Fatalf("(V W Vᵀ)[%d, %d] = %v, want %v", i, j, sum, a[i*lda+j])
				}
			}
		}
		values := make([]float64, n)
		short := max(1, 3*n-1) // gonum's smallest workspace, less than dsyevd needs
		slow.Dsyev(lapack.EVNone, ul, n, clone(a), lda, values, make([]float64, short), short)
		checkEqual(t, "eigenvalues", w, values, 1e-11)
		fast.Dsyev(lapack.EVNone, ul, n, a, lda, w, make([]float64, short), short)
		checkEqual(t, "eigenvalues alone", w, values, 1e-11)
	})
}

// TestLeadingEigenvectors checks that both implementations return orthonormal eigenvectors of the
// largest eigenvalues. count gets all eigenvalues and returns how many vectors are wanted.
func TestLeadingEigenvectors(t *testing.T) {
	t.Parallel()
	for name, leading := range map[string]func(a []float64, n int, count func(values []float64) int) ([]float64, *mat.Dense, error){
		"native library": fastLAPACK{lib: fastLibrary(t)}.LeadingEigen, "gonum": linalg.Gonum{}.LeadingEigen,
	} {
		rapid.Check(t, func(t *rapid.T) {
			g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
			n := rapid.OneOf(rapid.IntRange(1, 40), rapid.SampledFrom([]int{64, 65, 130})).Draw(t, "n")
			k := rapid.IntRange(0, n).Draw(t, "k")
			a := make([]float64, n*n)
			for i := range n {
				for j := i; j < n; j++ {
					a[i*n+j] = g.NormFloat64()
				}
			}
			want := make([]float64, n)
			lapackgonum.Implementation{}.Dsyev(lapack.EVNone, blas.Upper, n, clone(a), n, want, make([]float64, 3*n), 3*n)
			slices.Reverse(want)
			symmetricMatrix := mat.NewSymDense(n, clone(a))
			values, vectors, err := leading(a, n, func(all []float64) int {
				if len(all) != n {
					t.Fatalf("%s: count got %d eigenvalues, want %d", name, len(all), n)
				}
				return k
			})
			if err != nil {
				t.Fatal(err)
			}
			checkEqual(t, name+": eigenvalues", values, want, 1e-11)
			if k == 0 {
				if vectors != nil {
					t.Fatalf("%s: got vectors, want none", name)
				}
				return
			}
			var gram, product mat.Dense
			gram.Mul(vectors.T(), vectors)
			product.Mul(symmetricMatrix, vectors)
			for j := range k {
				for i := range k {
					if want := map[bool]float64{true: 1}[i == j]; math.Abs(gram.At(i, j)-want) > 1e-11 {
						t.Fatalf("%s: inner product of vectors %d and %d = %v, want %v", name, i, j, gram.At(i, j), want)
					}
				}
				for i := range n {
					if math.Abs(product.At(i, j)-values[j]*vectors.At(i, j)) > 1e-10 {
						t.Fatalf("%s: component %d of A times vector %d = %v, want %v", name, i, j, product.At(i, j), values[j]*vectors.At(i, j))
					}
				}
			}
		})
	}
}

func TestSingularVectorsReconstruct(t *testing.T) {
	t.Parallel()
	fast := fastLAPACK{lib: fastLibrary(t)}
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		m, n := rapid.IntRange(1, 30).Draw(t, "m"), rapid.IntRange(1, 30).Draw(t, "n")
		job := rapid.SampledFrom([]lapack.SVDJob{lapack.SVDAll, lapack.SVDStore}).Draw(t, "job")
		a, lda := randomMatrix(g, m, n)
		r, ucols, vrows := min(m, n), min(m, n), min(m, n)
		if job == lapack.SVDAll {
			ucols, vrows = m, n
		}
		u, ldu := randomMatrix(g, m, ucols)
		vt, ldvt := randomMatrix(g, vrows, n)
		s := make([]float64, r)
		if !fast.Dgesvd(job, job, m, n, clone(a), lda, s, u, ldu, vt, ldvt, make([]float64, 1000), 1000) {
			t.Fatal("does not converge")
		}
		for i := range m {
			for j := range n {
				var sum float64
				for k := range r {
					sum += u[i*ldu+k] * s[k] * vt[k*ldvt+j]
				}
				if math.Abs(sum-a[i*lda+j]) > 1e-11 {
					t.Fatalf("(U S Vᵀ)[%d, %d] = %v, want %v", i, j, sum, a[i*lda+j])
				}
			}
		}
		alone := make([]float64, r)
		fast.Dgesvd(lapack.SVDNone, lapack.SVDNone, m, n, a, lda, alone, nil, 1, nil, 1, make([]float64, 1000), 1000)
		checkEqual(t, "singular values alone", alone, s, 1e-11)
	})
}

// TestSingularValuesWithoutConvergence checks that gonum's code decomposes the original matrix
// where the native dgesdd does not converge.
func TestSingularValuesWithoutConvergence(t *testing.T) {
	t.Parallel()
	failing := *fastLibrary(t)
	original := failing.dgesdd
	// l1 is the length of the character argument jobz, which gfortran expects.
	failing.dgesdd = func(jobz *byte, m, n *int32, a *float64, lda *int32, s, u *float64, ldu *int32, vt *float64, ldvt *int32, work *float64, lwork, iwork, info *int32, l1 int) {
		original(jobz, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork, iwork, info, l1)
		if *lwork != -1 { // not only a query of the workspace size
			*info = 1 // did not converge
		}
	}
	g := rand.New(rand.NewPCG(3, 0))
	for _, size := range [][2]int{{7, 4}, {4, 7}, {5, 5}} {
		a, lda := randomMatrix(g, size[0], size[1])
		for _, job := range []lapack.SVDJob{lapack.SVDNone, lapack.SVDStore} {
			var results [2][3][]float64 // by library: singular values, U and Vᵀ
			for i, lib := range []*library{fastLibrary(t), &failing} {
				k := min(size[0], size[1])
				s, u, vt := make([]float64, k), make([]float64, size[0]*k), make([]float64, k*size[1])
				f := fastLAPACK{lib: lib}
				if !f.Dgesvd(job, job, size[0], size[1], clone(a), lda, s, u, k, vt, size[1], make([]float64, 1000), 1000) {
					t.Fatalf("%v: does not converge", size)
				}
				for _, m := range [][]float64{u, vt} { // the sign of a singular vector is arbitrary
					for j, v := range m {
						m[j] = math.Abs(v)
					}
				}
				results[i] = [3][]float64{s, u, vt}
			}
			for part := range 3 {
				checkEqual(t, fmt.Sprintf("part %d of %v", part, size), results[1][part], results[0][part], 1e-11)
			}
		}
	}
}

func TestShortSlicesPanic(t *testing.T) {
	t.Parallel()
	fast := fastBLAS{lib: fastLibrary(t)}
	for name, f := range map[string]func(){
		"A": func() {
			fast.Dgemm(blas.NoTrans, blas.NoTrans, 2, 2, 2, 1, make([]float64, 3), 2, make([]float64, 4), 2, 0, make([]float64, 4), 2)
		},
		"C": func() {
			fast.Sgemm(blas.NoTrans, blas.NoTrans, 2, 2, 2, 1, make([]float32, 4), 2, make([]float32, 4), 2, 0, make([]float32, 3), 2)
		},
		"stride": func() { fast.Dsyrk(blas.Upper, blas.NoTrans, 2, 2, 1, make([]float64, 4), 1, 0, make([]float64, 4), 2) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Fatal("no panic")
				}
			}()
			f()
		})
	}
}

// TestSingleDecompositions checks that decompositions in single precision (float32) restore their
// matrix, whether by a native library such as OpenBLAS or by gonum in float64. fastLibrary skips
// the test if there is no such library. The last argument of cholesky is the distance between rows.
func TestSingleDecompositions(t *testing.T) {
	t.Parallel()
	native := fastLAPACK{lib: fastLibrary(t)}
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		n := rapid.IntRange(0, 9).Draw(t, "n")
		x := mat.NewDense(n+3, max(n, 1), nil)
		for i := range n + 3 {
			for j := range max(n, 1) {
				x.Set(i, j, g.NormFloat64())
			}
		}
		var product mat.Dense
		product.Mul(x.T(), x)
		a := make([]float32, n*n)
		for i := range a {
			a[i] = float32(product.RawMatrix().Data[i])
		}
		for _, l := range []linalg.Library{native, linalg.Gonum{}} {
			c := append([]float32(nil), a...) // overwritten by the upper triangular factor T
			if !l.CholeskySingle(c, n, max(n, 1)) {
				t.Fatalf("%T: cholesky = false for a positive definite matrix", l)
			}
			v := append([]float32(nil), a...) // overwritten by the eigenvectors V, in rows
			values, ok := l.EigenSingle(v, n)
			if !ok {
				t.Fatalf("%T: eigen does not converge", l)
			}
			for i := range n {
				for j := i; j < n; j++ {
					var byCholesky, byEigen float64
					for k := range n {
						if k <= i {
							byCholesky += float64(c[k*n+i]) * float64(c[k*n+j])
						}
						byEigen += float64(values[k]) * float64(v[k*n+i]) * float64(v[k*n+j])
					}
					want := float64(a[i*n+j])
					if math.Abs(byCholesky-want) > 1e-4 || math.Abs(byEigen-want) > 1e-4 {
						t.Fatalf("%T: element [%d, %d] of Tᵀ T = %v and of Vᵀ diag(values) V = %v, want %v", l, i, j, byCholesky, byEigen, want)
					}
				}
			}
		}
		indefinite := []float32{1, 2, 2, 1}
		if native.CholeskySingle(indefinite, 2, 2) {
			t.Fatal("cholesky accepted an indefinite matrix")
		}
	})
}

func TestLoad(t *testing.T) {
	t.Setenv(backendEnv, "none")
	if b := Load(); b.Name != "gonum" || b.Path != "" || b.Threads != 1 || b.Hint != "" {
		t.Errorf("with none: Load() = %+v, want gonum without a hint", b)
	}
	t.Setenv(backendEnv, filepath.Join(t.TempDir(), "missing.so"))
	if b := Load(); b.Name != "gonum" || b.Hint == "" || !strings.Contains(b.Problem, "missing.so") {
		t.Errorf("with a missing library: Load() = %+v, want gonum with a hint and a problem", b)
	}
	text := filepath.Join(t.TempDir(), "text.so")
	if err := os.WriteFile(text, []byte("not a library"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(backendEnv, text)
	if b := Load(); b.Name != "gonum" || !strings.Contains(b.Problem, "text.so") {
		t.Errorf("with a text file: Load() = %+v, want gonum with a problem", b)
	}
	fastLibrary(t)
	t.Setenv(backendEnv, "")
	b := Load()
	if b.Path == "" || b.Hint != "" || b.Problem != "" {
		t.Errorf("with a library: Load() = %+v, want its path without a hint or problem", b)
	}
	if before := b.Threads; before > 1 {
		b.SetThreads(1)
		if got := b.String(); !strings.Contains(got, "1 threads") {
			t.Errorf("with one thread: String() = %q, want 1 threads", got)
		}
		b.SetThreads(before)
	}
}
