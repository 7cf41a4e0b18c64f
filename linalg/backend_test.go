package linalg

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
	"gonum.org/v1/gonum/lapack"
	lapackgonum "gonum.org/v1/gonum/lapack/gonum"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// native returns the fast library of this machine without registering it.
func native(t testing.TB) *library {
	t.Helper()
	for _, path := range candidates() {
		if lib, err := open(path); err == nil {
			return lib
		}
	}
	t.Skip("no fast BLAS on this machine")
	return nil
}

// matrix returns a random rows x cols matrix whose stride may be larger than cols.
func matrix(g *rand.Rand, rows, cols int) ([]float64, int) {
	stride := max(cols, 1) + g.IntN(3)
	a := make([]float64, rows*stride)
	for i := range a {
		a[i] = g.NormFloat64()
	}
	return a, stride
}

func equal(t rapid.TB, what string, got, want []float64, tolerance float64) {
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tolerance) {
			t.Fatalf("%s: value %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

func clone(a []float64) []float64 { return append([]float64(nil), a...) }

func single(a []float64) []float32 {
	out := make([]float32, len(a))
	for i, v := range a {
		out[i] = float32(v)
	}
	return out
}

func double(a []float32) []float64 {
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
	fast, slow := fastBLAS{lib: native(t)}, gonum.Implementation{}
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		m, n, k := orders.Draw(t, "m"), orders.Draw(t, "n"), orders.Draw(t, "k")
		ta, tb := transposes.Draw(t, "ta"), transposes.Draw(t, "tb")
		ul := triangles.Draw(t, "uplo")
		alpha, beta := scalars.Draw(t, "alpha"), scalars.Draw(t, "beta")
		rows, cols := shape(ta, m, k)
		a, lda := matrix(g, rows, cols)
		rows, cols = shape(tb, k, n)
		b, ldb := matrix(g, rows, cols)
		c, ldc := matrix(g, m, n)

		want, got := clone(c), clone(c)
		slow.Dgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, want, ldc)
		fast.Dgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, got, ldc)
		equal(t, "Dgemm", got, want, 1e-12)
		got32 := single(c)
		fast.Sgemm(ta, tb, m, n, k, float32(alpha), single(a), lda, single(b), ldb, float32(beta), got32, ldc)
		equal(t, "Sgemm", double(got32), want, 1e-4)

		s, lds := matrix(g, m, m)
		want, got = clone(s), clone(s)
		slow.Dsyrk(ul, ta, m, k, alpha, a, lda, beta, want, lds)
		fast.Dsyrk(ul, ta, m, k, alpha, a, lda, beta, got, lds)
		equal(t, "Dsyrk", got, want, 1e-12)
		got32 = single(s)
		fast.Ssyrk(ul, ta, m, k, float32(alpha), single(a), lda, float32(beta), got32, lds)
		equal(t, "Ssyrk", double(got32), want, 1e-4)
	})
}

func TestSolvesAgreeWithGonum(t *testing.T) {
	t.Parallel()
	fast, slow := fastBLAS{lib: native(t)}, gonum.Implementation{}
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
		a, lda := matrix(g, order, order)
		for i := range order {
			for j := range order {
				a[i*lda+j] *= 0.1 // keeps a unit triangle well conditioned too
			}
			a[i*lda+i] = 2
		}
		b, ldb := matrix(g, m, n)
		want, got := clone(b), clone(b)
		slow.Dtrsm(side, ul, ta, diag, m, n, 0.5, a, lda, want, ldb)
		fast.Dtrsm(side, ul, ta, diag, m, n, 0.5, a, lda, got, ldb)
		equal(t, "Dtrsm", got, want, 1e-11)
		got32 := single(got)
		copy(got32, single(b))
		fast.Strsm(side, ul, ta, diag, m, n, 0.5, single(a), lda, got32, ldb)
		equal(t, "Strsm", double(got32), want, 1e-4)
	})
}

func TestCholeskyAgreesWithGonum(t *testing.T) {
	t.Parallel()
	fast, slow := fastLAPACK{lib: native(t)}, lapackgonum.Implementation{}
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		n := orders.Draw(t, "n")
		ul := triangles.Draw(t, "uplo")
		a, lda := symmetric(g, n)
		for i := range n {
			a[i*lda+i] += 20
		}
		want, got := clone(a), clone(a)
		okw, okg := slow.Dpotrf(ul, n, want, lda), fast.Dpotrf(ul, n, got, lda)
		if !okw || !okg {
			t.Fatalf("a positive definite matrix: %v, %v", okw, okg)
		}
		equal(t, "Dpotrf", got, want, 1e-11)
		if n > 0 {
			a[0] = -1
			if fast.Dpotrf(ul, n, a, lda) {
				t.Fatal("an indefinite matrix has a Cholesky factor")
			}
		}
	})
}

func symmetric(g *rand.Rand, n int) ([]float64, int) {
	a, lda := matrix(g, n, n)
	for i := range n {
		for j := range i {
			a[i*lda+j] = a[j*lda+i]
		}
	}
	return a, lda
}

func TestEigenvectorsReconstruct(t *testing.T) {
	t.Parallel()
	fast, slow := fastLAPACK{lib: native(t)}, lapackgonum.Implementation{}
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		n := rapid.IntRange(1, 40).Draw(t, "n")
		ul := triangles.Draw(t, "uplo")
		a, lda := symmetric(g, n)
		v, w := clone(a), make([]float64, n)
		want := make([]float64, 1)
		fast.Dsyev(lapack.EVCompute, ul, n, v, lda, w, want, -1)
		if !fast.Dsyev(lapack.EVCompute, ul, n, v, lda, w, make([]float64, int(want[0])), int(want[0])) {
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
		short := max(1, 3*n-1) // gonum's own minimum, less than dsyevd wants
		slow.Dsyev(lapack.EVNone, ul, n, clone(a), lda, values, make([]float64, short), short)
		equal(t, "eigenvalues", w, values, 1e-11)
		fast.Dsyev(lapack.EVNone, ul, n, a, lda, w, make([]float64, short), short)
		equal(t, "eigenvalues alone", w, values, 1e-11)
	})
}

// Both implementations return orthonormal eigenvectors of the largest eigenvalues.
func TestLeadingEigenvectors(t *testing.T) {
	t.Parallel()
	for name, leading := range map[string]func([]float64, int, func([]float64) int) ([]float64, *mat.Dense, error){
		"library": fastLAPACK{lib: native(t)}.leading, "all": leadingOfAll,
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
			whole := mat.NewSymDense(n, clone(a))
			values, vectors, err := leading(a, n, func(all []float64) int {
				if len(all) != n {
					t.Fatalf("%s: %d values of %d", name, len(all), n)
				}
				return k
			})
			if err != nil {
				t.Fatal(err)
			}
			equal(t, name+": eigenvalues", values, reversed(want), 1e-11)
			if k == 0 {
				if vectors != nil {
					t.Fatalf("%s: got vectors, want none", name)
				}
				return
			}
			var gram, turned mat.Dense
			gram.Mul(vectors.T(), vectors)
			turned.Mul(whole, vectors)
			for j := range k {
				for i := range k {
					if own := map[bool]float64{true: 1}[i == j]; math.Abs(gram.At(i, j)-own) > 1e-11 {
						t.Fatalf("%s: the product of vectors %d and %d is %v", name, i, j, gram.At(i, j))
					}
				}
				for i := range n {
					if math.Abs(turned.At(i, j)-values[j]*vectors.At(i, j)) > 1e-10 {
						t.Fatalf("%s: component %d of vector %d becomes %v, want %v", name, i, j, turned.At(i, j), values[j]*vectors.At(i, j))
					}
				}
			}
		})
	}
}

func TestSingularVectorsReconstruct(t *testing.T) {
	t.Parallel()
	fast := fastLAPACK{lib: native(t)}
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		m, n := rapid.IntRange(1, 30).Draw(t, "m"), rapid.IntRange(1, 30).Draw(t, "n")
		job := rapid.SampledFrom([]lapack.SVDJob{lapack.SVDAll, lapack.SVDStore}).Draw(t, "job")
		a, lda := matrix(g, m, n)
		r, ucols, vrows := min(m, n), min(m, n), min(m, n)
		if job == lapack.SVDAll {
			ucols, vrows = m, n
		}
		u, ldu := matrix(g, m, ucols)
		vt, ldvt := matrix(g, vrows, n)
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
		equal(t, "singular values alone", alone, s, 1e-11)
	})
}

func TestShortSlicesPanic(t *testing.T) {
	t.Parallel()
	fast := fastBLAS{lib: native(t)}
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

func TestAccelerate(t *testing.T) {
	t.Setenv(backendEnv, "none")
	if b := Accelerate(); b.Name != "gonum" || b.Path != "" || b.Threads != 1 || b.Hint != "" {
		t.Errorf("with none: %+v", b)
	}
	t.Setenv(backendEnv, filepath.Join(t.TempDir(), "missing.so"))
	if b := Accelerate(); b.Name != "gonum" || b.Hint == "" || !strings.Contains(b.Problem, "missing.so") {
		t.Errorf("with a missing library: %+v", b)
	}
	text := filepath.Join(t.TempDir(), "text.so")
	if err := os.WriteFile(text, []byte("not a library"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(backendEnv, text)
	if b := Accelerate(); b.Name != "gonum" || !strings.Contains(b.Problem, "text.so") {
		t.Errorf("with a text file: %+v", b)
	}
	native(t)
	t.Setenv(backendEnv, "")
	b := Accelerate()
	if b.Path == "" || b.Hint != "" || b.Problem != "" {
		t.Errorf("with a library: %+v", b)
	}
	if before := b.Threads; before > 1 {
		b.SetThreads(1)
		if got := b.String(); !strings.Contains(got, "1 threads") {
			t.Errorf("with one thread: %s", got)
		}
		b.SetThreads(before)
	}
}
