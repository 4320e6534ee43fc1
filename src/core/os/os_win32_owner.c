/* Who owns a file on Windows, and who else may write to it.
 *
 * An owner is a security identifier there, an os_info has 32 bits: sfti_os_user() is a hash of the
 * user's own, and that of others differs from it always, 0 the system and its administrators. A
 * file that an administrator's process makes belongs to all administrators: in such a process that
 * is the user. Where a file system has no owners, all is the user's. */
#include "os/os_win32.h"

#include <stdlib.h>
#include <string.h>

#define SECURITY_BYTES 1024 /* of most descriptors: owner and list of who may what */

typedef union token_sid {
    TOKEN_USER user;
    TOKEN_OWNER owner;
    unsigned char bytes[sizeof(TOKEN_USER) + SECURITY_MAX_SID_SIZE];
} token_sid;

typedef struct identity {
    token_sid user, owner; /* of what this process makes */
    bool has_user, has_owner;
    uint32_t hash;
} identity;

static identity own_identity;
static INIT_ONCE own_identity_once = INIT_ONCE_STATIC_INIT;

static uint32_t sid_hash(PSID sid) {
    const unsigned char *at = sid;
    uint32_t hash = 2166136261u;
    for (DWORD i = 0, len = GetLengthSid(sid); i < len; i++) hash = (hash ^ at[i]) * 16777619u;
    return hash == 0 ? 1 : hash;
}

static BOOL CALLBACK find_identity(PINIT_ONCE once, PVOID ctx, PVOID *out) {
    HANDLE token;
    DWORD len;
    identity *own = &own_identity;
    (void)once, (void)ctx, (void)out;
    own->hash = 1;
    if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token)) return TRUE;
    own->has_user = GetTokenInformation(token, TokenUser, &own->user, sizeof own->user, &len);
    own->has_owner = GetTokenInformation(token, TokenOwner, &own->owner, sizeof own->owner, &len);
    (void)CloseHandle(token);
    if (own->has_user) own->hash = sid_hash(own->user.user.User.Sid);
    return TRUE;
}

static const identity *identity_of_process(void) {
    (void)InitOnceExecuteOnce(&own_identity_once, find_identity, NULL, NULL);
    return &own_identity;
}

uint32_t sfti_os_user(void) {
    return identity_of_process()->hash;
}

static bool is_own_sid(const identity *own, PSID sid) {
    return (own->has_user && EqualSid(sid, own->user.user.User.Sid)) ||
           (own->has_owner && EqualSid(sid, own->owner.owner.Owner));
}

/* The service that owns the system's files; others of S-1-5-80 may be anybody's. */
static bool is_installer(PSID sid) {
    static const DWORD parts[] = { 80, 956008885, 3418522649, 1831038044, 1853292631, 2271478464 };
    bool same = *GetSidSubAuthorityCount(sid) == sizeof parts / sizeof *parts;
    for (DWORD i = 0; same && i < sizeof parts / sizeof *parts; i++)
        same = *GetSidSubAuthority(sid, i) == parts[i];
    return same;
}

bool sfti_os_win_is_system(PSID sid) {
    static SID_IDENTIFIER_AUTHORITY nt = SECURITY_NT_AUTHORITY;
    const SID *s = sid;
    if (memcmp(&s->IdentifierAuthority, &nt, sizeof nt) != 0) return false;
    if (s->SubAuthorityCount == 2)
        return s->SubAuthority[0] == SECURITY_BUILTIN_DOMAIN_RID &&
               *GetSidSubAuthority(sid, 1) == DOMAIN_ALIAS_RID_ADMINS;
    if (s->SubAuthorityCount == 1) return s->SubAuthority[0] == SECURITY_LOCAL_SYSTEM_RID;
    return is_installer(sid);
}

/* Whether somebody else than the owner, this user and the system may change the bytes. */
static bool others_write(const identity *own, PSID owner, PACL list) {
    const DWORD change = FILE_WRITE_DATA | FILE_APPEND_DATA | GENERIC_WRITE | GENERIC_ALL |
                         WRITE_DAC | WRITE_OWNER;
    for (DWORD i = 0; i < list->AceCount; i++) {
        void *at;
        if (!GetAce(list, i, &at)) return true;
        const ACE_HEADER *header = at;
        ACCESS_ALLOWED_ACE *allowed = at;
        PSID sid = &allowed->SidStart;
        bool allows = header->AceType == ACCESS_ALLOWED_ACE_TYPE ||
                      header->AceType == ACCESS_ALLOWED_CALLBACK_ACE_TYPE;
        if (!allows || (header->AceFlags & INHERIT_ONLY_ACE)) continue;
        bool trusted = is_own_sid(own, sid) || sfti_os_win_is_system(sid);
        if ((allowed->Mask & change) == 0 || trusted) continue;
        if (!EqualSid(sid, owner) && !IsWellKnownSid(sid, WinCreatorOwnerRightsSid)) return true;
    }
    return false;
}

/* A file system without owners says "everyone", or nothing. */
static void info_security(PSECURITY_DESCRIPTOR security, const identity *own, os_info *out) {
    PSID owner = NULL;
    PACL list = NULL;
    BOOL flag, present = FALSE;
    (void)GetSecurityDescriptorOwner(security, &owner, &flag);
    (void)GetSecurityDescriptorDacl(security, &present, &list, &flag);
    out->owner = own->hash;
    if (owner && !is_own_sid(own, owner) && !IsWellKnownSid(owner, WinWorldSid)) {
        uint32_t hash = sid_hash(owner);
        if (hash == own->hash) hash ^= 0x80000000u;
        out->owner = sfti_os_win_is_system(owner) ? 0 : hash;
    }
    bool open = !present || !list || (owner && others_write(own, owner, list));
    if (open && (out->mode & 0200)) out->mode |= 022;
}

/* What cannot be looked at is not the user's own. */
void sfti_os_win_info_owner(HANDLE handle, os_info *out) {
    const SECURITY_INFORMATION wanted = OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION;
    union {
        SECURITY_DESCRIPTOR align;
        unsigned char bytes[SECURITY_BYTES];
    } usual;
    void *security = &usual;
    const identity *own = identity_of_process();
    DWORD len = sizeof usual;
    BOOL known = GetKernelObjectSecurity(handle, wanted, security, len, &len);
    if (!known && GetLastError() == ERROR_INSUFFICIENT_BUFFER) {
        security = malloc(len);
        known = security && GetKernelObjectSecurity(handle, wanted, security, len, &len);
    }
    bool none = !known && sfti_os_win_is_unsupported(GetLastError());
    if (known) info_security(security, own, out);
    else out->owner = none ? own->hash : own->hash ^ 0x40000000u;
    if (security != &usual) free(security);
}
