/* What CPython's headers must know of 64-bit Windows and of the compilers that we use for it
 * (mingw-w64 gcc, zig cc). The headers are those of a Linux CPython; only this file differs. It is
 * for the stable ABI (Py_LIMITED_API), whose declarations depend on no more than this. */
#ifndef SFT_PYCONFIG_H
#define SFT_PYCONFIG_H

#if !defined(_WIN64)
#error "this pyconfig.h is for 64-bit Windows"
#endif

#define MS_WINDOWS
#define MS_WIN32
#define MS_WIN64
#define NT_THREADS
#define WITH_THREAD

/* Declarations are imports from python3.dll. */
#define HAVE_DECLSPEC_DLL
#define Py_ENABLE_SHARED
#define MS_COREDLL

#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_VOID_P 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_TIME_T 8
#define SIZEOF_FPOS_T 8
#define SIZEOF_HKEY 8
#define SIZEOF_WCHAR_T 2
#define ALIGNOF_SIZE_T 8
#define HAVE_LONG_LONG 1

typedef long long Py_ssize_t;
#define HAVE_PY_SSIZE_T 1
#define PY_SSIZE_T_MAX ((Py_ssize_t)(((size_t)-1) >> 1))
#define PY_LONG_LONG long long
#define PY_LLONG_MIN LLONG_MIN
#define PY_LLONG_MAX LLONG_MAX
#define PY_ULLONG_MAX ULLONG_MAX

#define HAVE_STDARG_PROTOTYPES 1
#define HAVE_STDDEF_H 1
#define HAVE_SYS_STAT_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_WCHAR_H 1
#define HAVE_ERRNO_H 1
#define STDC_HEADERS 1
#define WITH_DOC_STRINGS 1

#endif
