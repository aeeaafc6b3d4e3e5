//! The list of calls of supabase-auth, unmodified, against the service of tests/system/interop/test_clients.py.
use interop::{client, new_email, newest, newest_code, service_key, PASSWORD};
use serde_json::json;
use supabase_auth::models::{
    EmailSignUpResult, LogoutScope, OtpType, ResendParams, Session, SignUpWithPasswordOptions,
    UpdatedUser, VerifyEmailOtpParams, VerifyMobileOtpParams, VerifyOtpParams,
};
use uuid::Uuid;

async fn verified(email: &str, otp_type: OtpType) -> Session {
    let number = if otp_type == OtpType::Signup { 1 } else { 2 };
    let (email, token) = (email.to_owned(), newest_code(email, number).await);
    let params = VerifyEmailOtpParams { email, token, otp_type, options: None };
    client().verify_otp(VerifyOtpParams::Email(params)).await.unwrap()
}

async fn signed_up() -> (String, Session) {
    let email = new_email();
    client().sign_up_with_email_and_password(&email, PASSWORD, None).await.unwrap();
    let session = verified(&email, OtpType::Signup).await;
    (email, session)
}

#[tokio::test]
async fn sign_up_is_confirmed_by_a_code() {
    let email = new_email();
    let options = SignUpWithPasswordOptions { data: Some(json!({"name": "A"})), ..Default::default() };
    let made = client().sign_up_with_email_and_password(&email, PASSWORD, Some(options)).await.unwrap();
    let EmailSignUpResult::ConfirmationResult(user) = made else { panic!("a session without a confirmation") };
    assert_eq!(user.email.as_deref(), Some(&*email));
    assert!(client().login_with_email(&email, PASSWORD).await.is_err());
    let session = verified(&email, OtpType::Signup).await;
    assert_eq!((session.user.id, session.user.user_metadata.name.as_deref()), (user.id, Some("A")));
    assert_eq!(client().get_user(&session.access_token).await.unwrap().email, email);
    client().login_with_email(&email, PASSWORD).await.unwrap();
}

#[tokio::test]
async fn sign_up_is_sent_again() {
    let email = new_email();
    client().sign_up_with_email_and_password(&email, PASSWORD, None).await.unwrap();
    let again = ResendParams { otp_type: OtpType::Signup, email, options: None };
    client().resend(again).await.unwrap();
}

#[tokio::test]
async fn code_by_sms_signs_in() {
    let phone = format!("49170{:08}", Uuid::new_v4().as_u128() % 100_000_000);
    client().send_sms_with_otp(&phone).await.unwrap();
    let token = newest_code(&format!("+{phone}"), 1).await;
    let params = VerifyMobileOtpParams { phone: phone.clone(), token, otp_type: OtpType::Sms, options: None };
    let session = client().verify_otp(VerifyOtpParams::Mobile(params)).await.unwrap();
    assert_eq!(session.user.phone, phone);
}

#[tokio::test]
async fn code_by_email_signs_in() {
    let (email, _) = signed_up().await;
    client().send_email_with_otp(&email, None).await.unwrap();
    assert_eq!(verified(&email, OtpType::Email).await.user.email, email);
}

#[tokio::test]
async fn magic_link_is_sent() {
    let (email, _) = signed_up().await;
    client().send_login_email_with_magic_link(&email).await.unwrap();
    assert!(newest(&email, 2).await["link"].is_string());
}

#[tokio::test]
async fn session_is_refreshed_and_ends() {
    let (_, session) = signed_up().await;
    let renewed = client().refresh_session(&session.refresh_token).await.unwrap();
    assert_eq!(renewed.user.id, session.user.id);
    client().logout(Some(LogoutScope::Local), &renewed.access_token).await.unwrap();
    assert!(client().refresh_session(&renewed.refresh_token).await.is_err());
}

#[tokio::test]
async fn user_is_updated() {
    let (_, session) = signed_up().await;
    let change = UpdatedUser { data: Some(json!({"name": "B"})), ..Default::default() };
    let user = client().update_user(change, &session.access_token).await.unwrap();
    assert_eq!(user.user_metadata.name.as_deref(), Some("B"));
}

#[tokio::test]
async fn password_is_recovered() {
    let (email, _) = signed_up().await;
    client().reset_password_for_email(&email, None).await.unwrap();
    let session = verified(&email, OtpType::Recovery).await;
    let change = UpdatedUser { password: Some("Another-Horse-1".into()), ..Default::default() };
    client().update_user(change, &session.access_token).await.unwrap();
    client().login_with_email(&email, "Another-Horse-1").await.unwrap();
}

#[tokio::test]
async fn anonymous_user_has_a_session() {
    let session = client().login_anonymously(None).await.unwrap();
    assert!(session.user.is_anonymous);
}

#[tokio::test]
async fn user_is_invited() {
    let email = new_email();
    let user = client().invite_user_by_email(&email, None, &service_key()).await.unwrap();
    assert_eq!(user.email, email);
}

#[tokio::test]
async fn settings_are_read() {
    let settings = client().get_settings().await.unwrap();
    assert!(settings.external.email && !settings.external.google && !settings.disable_signup);
}

#[tokio::test]
async fn health_is_read() {
    assert_eq!(client().get_health().await.unwrap().name, "Latchkey");
}
