// The list of calls of auth-kt, unmodified, against the service that tests/system/interop/test_clients.py starts.
import io.github.jan.supabase.SupabaseClient
import io.github.jan.supabase.auth.Auth
import io.github.jan.supabase.auth.MemoryCodeVerifierCache
import io.github.jan.supabase.auth.MemorySessionManager
import io.github.jan.supabase.auth.OtpType
import io.github.jan.supabase.auth.admin.AdminApi
import io.github.jan.supabase.auth.auth
import io.github.jan.supabase.auth.mfa.FactorType
import io.github.jan.supabase.auth.providers.builtin.Email
import io.github.jan.supabase.auth.providers.builtin.OTP
import io.github.jan.supabase.auth.providers.builtin.Phone
import io.github.jan.supabase.createSupabaseClient
import io.ktor.client.engine.java.Java
import java.net.URI
import java.net.URLEncoder
import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpResponse
import java.nio.ByteBuffer
import java.util.UUID
import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec
import kotlin.random.Random
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFails
import kotlin.test.assertNotNull
import kotlin.test.assertTrue
import kotlinx.coroutines.delay
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import kotlinx.serialization.json.put

private const val PASSWORD = "Correct-Horse-1"
private val service = System.getenv("LATCHKEY_URL")
private val serviceKey = System.getenv("LATCHKEY_SERVICE_KEY")

private fun newEmail() = "${UUID.randomUUID()}@example.com"

private fun newPhone() = "49170${Random.nextInt(10_000_000, 99_999_999)}"

private fun newClient(): SupabaseClient = createSupabaseClient(service, "an-anon-key-that-is-ignored") {
    httpEngine = Java.create()
    install(Auth) {
        alwaysAutoRefresh = false
        autoLoadFromStorage = false
        sessionManager = MemorySessionManager()
        codeVerifierCache = MemoryCodeVerifierCache()
    }
}

/** The newest message to an address, as soon as it has been sent. */
private suspend fun newest(to: String): JsonObject {
    val address = URI("$service/dev/inbox?recipient=${URLEncoder.encode(to, "UTF-8")}")
    val request = HttpRequest.newBuilder(address).header("Authorization", "Bearer $serviceKey").build()
    repeat(300) {
        val body = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body()
        Json.parseToJsonElement(body).jsonArray.firstOrNull()?.let { return it.jsonObject }
        delay(100)
    }
    error("no message to $to")
}

private suspend fun newestCode(to: String) = newest(to)["code"]!!.jsonPrimitive.content

/** RFC 6238. */
private fun codeOf(secret: String): String {
    val alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
    val bits = secret.map { alphabet.indexOf(it).toString(2).padStart(5, '0') }.joinToString("")
    val key = bits.chunked(8).filter { it.length == 8 }.map { it.toInt(2).toByte() }.toByteArray()
    val mac = Mac.getInstance("HmacSHA1").apply { init(SecretKeySpec(key, "HmacSHA1")) }
    val sum = mac.doFinal(ByteBuffer.allocate(8).putLong(System.currentTimeMillis() / 30_000).array())
    val number = ByteBuffer.wrap(sum, sum.last().toInt() and 15, 4).int and Int.MAX_VALUE
    return (number % 1_000_000).toString().padStart(6, '0')
}

class InteropTest {
    private val client = newClient().auth

    private suspend fun admin(): AdminApi = newClient().auth.apply { importAuthToken(serviceKey) }.admin

    /** Sign a confirmed user in. */
    private suspend fun signIn(): String {
        val address = newEmail()
        admin().createUserWithEmail { email = address; password = PASSWORD; autoConfirm = true }
        client.signInWith(Email) { email = address; password = PASSWORD }
        return address
    }

    @Test
    fun signUpIsConfirmedByACode() = runBlocking {
        val address = newEmail()
        val user = client.signUpWith(Email) {
            email = address
            password = PASSWORD
            data = buildJsonObject { put("name", "A") }
        }
        assertEquals(address, assertNotNull(user).email)
        assertFails { client.signInWith(Email) { email = address; password = PASSWORD } }
        client.verifyEmailOtp(OtpType.Email.SIGNUP, address, newestCode(address))
        val confirmed = client.retrieveUserForCurrentSession()
        assertEquals(user.id, confirmed.id)
        assertEquals("A", confirmed.userMetadata!!["name"]!!.jsonPrimitive.content)
    }

    @Test
    fun signUpByPhoneIsConfirmedByACode() = runBlocking {
        val number = newPhone()
        client.signUpWith(Phone) { phone = number; password = PASSWORD }
        client.verifyPhoneOtp(OtpType.Phone.SMS, number, newestCode("+$number"))
        assertEquals(number, client.currentUserOrNull()!!.phone)
    }

    @Test
    fun sessionIsRefreshedAndEnds() = runBlocking {
        signIn()
        val first = client.currentSessionOrNull()!!.refreshToken
        client.refreshCurrentSession()
        val second = client.currentSessionOrNull()!!.refreshToken
        assertTrue(first != second)
        client.signOut()
        assertFails { client.refreshSession(second) }
        Unit
    }

    @Test
    fun userIsUpdated() = runBlocking {
        signIn()
        val user = client.updateUser { data { put("name", "B") } }
        assertEquals("B", user.userMetadata!!["name"]!!.jsonPrimitive.content)
    }

    @Test
    fun codeByEmailSignsIn() = runBlocking {
        val address = signIn()
        val other = newClient().auth
        other.signInWith(OTP) { email = address; createUser = false }
        other.verifyEmailOtp(OtpType.Email.EMAIL, address, newestCode(address))
        assertEquals(address, other.currentUserOrNull()!!.email)
    }

    @Test
    fun passwordIsRecovered() = runBlocking {
        val address = signIn()
        val other = newClient().auth
        other.resetPasswordForEmail(address)
        other.verifyEmailOtp(OtpType.Email.RECOVERY, address, newestCode(address))
        other.updateUser { password = "Another-Horse-1" }
        other.signInWith(Email) { email = address; password = "Another-Horse-1" }
    }

    @Test
    fun codeProvesTheUser() = runBlocking {
        val address = signIn()
        client.reauthenticate()
        assertTrue(newestCode(address).isNotEmpty())
    }

    @Test
    fun factorsAreEnrolledVerifiedAndRemoved() = runBlocking {
        signIn()
        val factor = client.mfa.enroll(FactorType.TOTP, "phone") { issuer = "example" }
        val challenge = client.mfa.createChallenge(factor.id)
        client.mfa.verifyChallenge(factor.id, challenge.id, codeOf(factor.data.secret))
        assertEquals(listOf(factor.id), client.mfa.retrieveFactorsForCurrentUser().map { it.id })
        client.mfa.unenroll(factor.id)
        assertEquals(listOf(), client.mfa.retrieveFactorsForCurrentUser())
    }

    @Test
    fun anonymousUserHasASession() = runBlocking {
        client.signInAnonymously()
        assertNotNull(client.currentUserOrNull())
        Unit
    }

    @Test
    fun usersAreAdministered() = runBlocking {
        val admin = admin()
        val address = newEmail()
        val user = admin.createUserWithEmail { email = address; password = PASSWORD; autoConfirm = true }
        assertEquals(address, admin.retrieveUserById(user.id).email)
        val changed = admin.updateUserById(user.id) {
            appMetadata = buildJsonObject { put("plan", "pro") }
            banDuration = "1h"
        }
        assertEquals("pro", changed.appMetadata!!["plan"]!!.jsonPrimitive.content)
        assertTrue(admin.retrieveUsers(1, 1000).any { it.id == user.id })
        assertEquals(listOf(), admin.retrieveFactors(user.id))
        admin.deleteUser(user.id)
        assertFails { admin.retrieveUserById(user.id) }
        Unit
    }

    @Test
    fun userIsInvited() = runBlocking {
        val address = newEmail()
        admin().inviteUserByEmail(address)
        assertTrue("link" in newest(address))
    }
}
